// SPDX-License-Identifier: Apache-2.0
#include "runtime/launched/launched_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "runtime/launched/control_connection.h"
#include "runtime/runtime.h"
#include "sys/fd.h"

namespace soma::runtime {
namespace {

using std::chrono::seconds;

constexpr seconds kQuick{10};
// A virtual machine boots in seconds under emulation; a loaded machine takes longer.
constexpr seconds kStartPatience{60};
constexpr seconds kKillPatience{20};

std::uint32_t LeaseSeconds(seconds lease) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(lease.count(), 1, control::kLeaseSecondsMax));
}

control::Limits ToControl(const Limits& limits) {
  control::Limits out;
  out.memory_bytes = limits.memory_bytes_max;
  out.disk_bytes = limits.disk_bytes_max;
  out.inodes = limits.inodes_max;
  out.pids = limits.processes_max;
  out.cpu_millis = limits.cpu_percent_max * 10;
  return out;
}

Death ToDeath(const std::optional<control::SandboxStatus>& status) {
  if (!status || !control::IsOver(status->state)) {
    return {.reason = "the sandbox's monitor is gone"};
  }
  if (status->state == control::SandboxState::kExited) {
    if (status->exit_signal != 0) {
      return {.reason = StrCat("pid 1 was killed by signal ", int{status->exit_signal})};
    }
    return {.reason = StrCat("pid 1 exited with ", int{status->exit_code})};
  }
  return {.reason = std::string(control::StateName(status->state))};
}

Result<control::Request> RequestFor(control::Verb verb, const std::string& sandbox_id) {
  control::Request request;
  request.verb = verb;
  SOMA_ASSIGN(request.sandbox, control::SandboxId::Create(sandbox_id));
  return request;
}

LimitHits ToHits(const control::SandboxStatus& status) {
  return {.memory_kills = status.memory_kills, .refused_forks = status.refused_forks};
}

// Kills and forgets; returns when no process is left. What is already gone is fine, and has no
// hits.
aio::Task<LimitHits> KillAndReap(std::shared_ptr<Launcher> launcher, std::string id) {
  SOMA_CO_ASSIGN(auto kill, RequestFor(control::Verb::kKill, id));
  auto killed = co_await launcher->Ask(std::move(kill), kKillPatience);
  if (!killed && killed.error().code() == Errc::kNotFound) co_return LimitHits{};
  const auto end = std::chrono::steady_clock::now() + kKillPatience;
  for (;;) {
    SOMA_CO_ASSIGN(auto reap, RequestFor(control::Verb::kReap, id));
    const auto reaped = co_await launcher->Ask(std::move(reap), kKillPatience);
    if (reaped) co_return ToHits(reaped->reply.status);
    if (reaped.error().code() == Errc::kNotFound) co_return LimitHits{};
    // It says "not yet" while processes are still going.
    if (std::chrono::steady_clock::now() > end) co_return std::unexpected(reaped.error());
    co_await aio::Sleep(launcher->loop(), std::chrono::milliseconds(2));
  }
}

class LaunchedSandbox final : public SandboxHandle {
 public:
  LaunchedSandbox(std::shared_ptr<Launcher> launcher, control::Level level, std::string id,
                  ControlConnection::Answer answer)
      : launcher_(std::move(launcher)),
        level_(level),
        id_(std::move(id)),
        wire_(answer.Take(control::DescriptorKind::kWire)),
        captures_{.tcp4 = answer.Take(control::DescriptorKind::kCaptureTcp4),
                  .tcp6 = answer.Take(control::DescriptorKind::kCaptureTcp6),
                  .dns_udp = answer.Take(control::DescriptorKind::kCaptureDnsUdp),
                  .dns_tcp = answer.Take(control::DescriptorKind::kCaptureDnsTcp)},
        monitor_(std::make_shared<ControlConnection>(
            launcher_->loop(), answer.Take(control::DescriptorKind::kMonitor))) {}

  Result<Fd> TakeWire() override {
    if (!wire_) return Fail(Errc::kFailedPrecondition, "the wire was taken already");
    return std::move(wire_);
  }

  CaptureSockets TakeCaptures() override { return std::move(captures_); }

  aio::Task<Death> WaitDeath(std::chrono::nanoseconds timeout) override {
    const std::shared_ptr<ControlConnection> monitor = monitor_;
    SOMA_CO_TRY(co_await monitor->WaitOver(timeout));
    co_return ToDeath(monitor->last_event());
  }

  aio::Task<void> RenewLease(seconds from_now) override {
    SOMA_CO_ASSIGN(auto request, RequestFor(control::Verb::kRenew, id_));
    request.lease_seconds = LeaseSeconds(from_now);
    const std::shared_ptr<ControlConnection> monitor = monitor_;
    const auto renewed = co_await monitor->Ask(std::move(request), kQuick);
    if (!renewed) co_return std::unexpected(renewed.error());
    co_return Status();
  }

  aio::Task<void> Freeze() override { return Simple(control::Verb::kFreeze); }
  aio::Task<void> Thaw() override { return Simple(control::Verb::kThaw); }

  aio::Task<void> Snapshot(std::string name) override {
    co_return Fail(Errc::kUnimplemented,
                   StrCat("snapshot \"", EscapeForTerminal(name), "\": not supported yet"));
  }

  aio::Task<void> Stop() override {
    // The first one has them: afterwards there is nobody to ask about.
    SOMA_CO_ASSIGN(const LimitHits hits, co_await KillAndReap(launcher_, id_));
    hits_.memory_kills += hits.memory_kills;
    hits_.refused_forks += hits.refused_forks;
    co_return Status();
  }

  LimitHits Hits() const override { return hits_; }

  aio::Task<Stats> GetStats() override {
    // What a machine's monitor takes says nothing about what is free inside.
    if (level_ != control::Level::kContainer) {
      co_return Fail(Errc::kUnimplemented, "the machine's own figures are the guest's");
    }
    SOMA_CO_ASSIGN(auto request, RequestFor(control::Verb::kStatus, id_));
    const std::shared_ptr<Launcher> launcher = launcher_;
    SOMA_CO_ASSIGN(const auto answer, co_await launcher->Ask(std::move(request), kQuick));
    const control::SandboxUsage& usage = answer.reply.usage;
    if (usage == control::SandboxUsage{}) {
      co_return Fail(Errc::kUnimplemented, "this launcher has no cgroups");
    }
    co_return Stats{.memory_bytes = usage.memory_bytes,
                    .memory_cache_bytes = usage.memory_cache_bytes,
                    .cpu_microseconds = usage.cpu_microseconds};
  }

 private:
  aio::Task<void> Simple(control::Verb verb) {
    SOMA_CO_ASSIGN(auto request, RequestFor(verb, id_));
    const std::shared_ptr<Launcher> launcher = launcher_;
    const auto done = co_await launcher->Ask(std::move(request), kQuick);
    if (!done) co_return std::unexpected(done.error());
    co_return Status();
  }

  std::shared_ptr<Launcher> launcher_;
  control::Level level_;
  std::string id_;
  LimitHits hits_;
  Fd wire_;
  CaptureSockets captures_;
  std::shared_ptr<ControlConnection> monitor_;
};

aio::Task<Fd> ConnectTo(std::string path) { co_return ConnectControl(path); }

}  // namespace

Launcher::Launcher(aio::Loop& loop, std::string socket_path)
    : Launcher(loop, [path = std::move(socket_path)] { return ConnectTo(path); }) {}

aio::Task<ControlConnection::Answer> Launcher::Ask(control::Request request,
                                                   std::chrono::nanoseconds timeout) {
  if (!connection_ || !connection_->alive()) {
    SOMA_CO_ASSIGN(Fd socket, co_await connect_());
    connection_ = std::make_shared<ControlConnection>(loop_, std::move(socket));
  }
  const std::shared_ptr<ControlConnection> connection = connection_;
  co_return co_await connection->Ask(std::move(request), timeout);
}

aio::Task<std::vector<Fd>> Launcher::Sockets() {
  control::Request request;
  request.verb = control::Verb::kSockets;
  SOMA_CO_ASSIGN(auto answer, co_await Ask(std::move(request), kQuick));
  std::vector<Fd> sockets;
  while (Fd socket = answer.Take(control::DescriptorKind::kListenHttp)) {
    sockets.push_back(std::move(socket));
  }
  co_return sockets;
}

Capabilities LaunchedRuntime::capabilities() const {
  return {.freeze = true,
          .snapshot = false,
          .wire_is_lossy = level_ != control::Level::kContainer,
          .lacks = {}};
}

aio::Task<std::unique_ptr<SandboxHandle>> LaunchedRuntime::Start(StartRequest start) {
  SOMA_CO_ASSIGN(auto request, RequestFor(control::Verb::kStart, start.sandbox_id));
  auto template_id = control::TemplateId::Create(start.template_id);
  // No name at all encodes as "none", which is no template either.
  if (!template_id || template_id->empty()) {
    co_return Fail(Errc::kNotFound,
                   StrCat("template '", EscapeForTerminal(start.template_id), "' not found"));
  }
  request.template_id = *std::move(template_id);
  request.level = level_;
  request.profile = start.profile == Profile::kStrict ? control::TaskProfile::kStrict
                                                      : control::TaskProfile::kRooted;
  request.limits = ToControl(start.limits);
  request.lease_seconds = LeaseSeconds(start.lease);
  request.token = start.token;
  SOMA_CO_ASSIGN(auto answer, co_await launcher_->Ask(std::move(request), kStartPatience));
  co_return std::make_unique<LaunchedSandbox>(launcher_, level_, std::move(start.sandbox_id),
                                              std::move(answer));
}

aio::Task<std::unique_ptr<SandboxHandle>> LaunchedRuntime::Attach(std::string sandbox_id,
                                                                  GuardToken token) {
  SOMA_CO_ASSIGN(auto request, RequestFor(control::Verb::kAttach, sandbox_id));
  request.token = token;
  SOMA_CO_ASSIGN(auto answer, co_await launcher_->Ask(std::move(request), kQuick));
  co_return std::make_unique<LaunchedSandbox>(launcher_, level_, std::move(sandbox_id),
                                              std::move(answer));
}

aio::Task<std::vector<std::string>> LaunchedRuntime::List() {
  std::vector<std::string> ids;
  std::string last;
  for (;;) {
    SOMA_CO_ASSIGN(auto request, RequestFor(control::Verb::kList, last));
    const auto answer = co_await launcher_->Ask(std::move(request), kQuick);
    if (!answer && answer.error().code() == Errc::kNotFound) co_return ids;
    if (!answer) co_return std::unexpected(answer.error());
    const control::SandboxStatus& status = answer->reply.status;
    const std::string id(status.sandbox.text());
    // A list that does not grow would never end.
    if (id <= last) co_return Fail(Errc::kInternal, "the launcher's list goes backwards");
    last = id;
    if (status.level == level_ && !control::IsOver(status.state)) ids.push_back(id);
  }
}

aio::Task<void> LaunchedRuntime::StopUnknown(std::string sandbox_id) {
  SOMA_CO_TRY(co_await KillAndReap(launcher_, std::move(sandbox_id)));
  co_return Status();
}

}  // namespace soma::runtime
