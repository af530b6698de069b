// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_run.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "audit/journal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "egress/broker.h"
#include "egress/resolver.h"
#include "policy/model.h"
#include "runtime/guest_link.h"
#include "runtime/launched/launched_runtime.h"
#include "runtime/runtime.h"
#include "sandbox/copy_in.h"
#include "sandbox/egress_gate.h"
#include "sandbox/foreground_task.h"
#include "sandbox/host_signals.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "workspace/workspace_tar.h"

namespace soma::sandbox {
namespace {

using std::chrono::seconds;

constexpr seconds kLease{60};
constexpr seconds kRenewEvery{15};
// An emulated machine boots in seconds; beside other work in many.
constexpr seconds kAgentPatience{180};
constexpr seconds kInitPatience{60};
// For an agent that ends a command at its limit and has output of it to deliver.
constexpr seconds kLimitGrace{5};

class ForegroundRun {
 public:
  ForegroundRun(const ForegroundOptions& options, HostSignals& signals, Clock& clock,
                Random& random)
      : options_(options), signals_(signals), clock_(clock), random_(random) {}

  Result<ForegroundEnd> Run() {
    loop_.SpawnRoot(WatchSignals());
    loop_.SpawnRoot(Drive());
    loop_.Run();
    if (interrupted_by_ != 0) {
      return ForegroundEnd{.task = {.exit_code = 128 + interrupted_by_,
                                    .started = false,
                                    .timed_out = false,
                                    .how = StrCat("interrupted by signal ", interrupted_by_)},
                           .kernel = {},
                           .hidden = 0,
                           .other = 0};
    }
    return std::move(result_);
  }

 private:
  aio::Job Drive() {
    result_ = co_await Whole();
    if (handle_) {
      if (link_) link_->Close("the run is over");
      const Status stopped = co_await handle_->Stop();
      if (!stopped && result_) result_ = std::unexpected(stopped.error());
    }
    loop_.Stop();
  }

  aio::Task<ForegroundEnd> Whole() {
    SOMA_CO_TRY(co_await StartSandbox());
    ForegroundEnd end;
    SOMA_CO_ASSIGN(end.kernel, co_await Greet());
    SOMA_CO_ASSIGN(auto tar, workspace::WorkspaceTar::Open(options_.workspace, options_.is_hidden,
                                                           {.bytes_max = options_.copy_bytes_max}));
    SOMA_CO_TRY(co_await CopyIn(*link_, tar, options_.directory, options_.user));
    end.hidden = tar.hidden();
    end.other = tar.other();
    task_ = std::make_unique<ForegroundTask>(loop_, *link_, StartMessage());
    if (options_.time_limit) loop_.SpawnRoot(EndAtLimit(*options_.time_limit + kLimitGrace));
    auto task = co_await task_->Run();
    if (!task && limit_passed_) {
      task = TaskEnd{.exit_code = 128 + SIGKILL,
                     .started = true,
                     .timed_out = true,
                     .how = "ended with its sandbox, whose agent had not ended it in time"};
    }
    SOMA_CO_ASSIGN(end.task, std::move(task));
    co_return end;
  }

  // The agent ends a command at its limit. It is inside, and may be the command's by then.
  aio::Job EndAtLimit(std::chrono::milliseconds from_now) {
    co_await aio::Sleep(loop_, from_now);
    limit_passed_ = true;
    (void)co_await handle_->Stop();
    link_->Close("the time limit was reached");
  }

  aio::Task<void> StartSandbox() {
    const auto level =
        options_.level == "emulated" ? control::Level::kEmulated : control::Level::kContainer;
    runtime_ = std::make_unique<runtime::LaunchedRuntime>(
        std::make_shared<runtime::Launcher>(loop_, options_.launcher_socket), level);
    runtime::StartRequest start;
    start.sandbox_id = options_.sandbox_id;
    start.template_id = options_.template_id;
    start.profile = options_.profile;
    start.limits = options_.limits;
    start.lease = kLease;
    // No token: the sandbox is this process's alone, and ends with it.
    SOMA_CO_ASSIGN(handle_, co_await runtime_->Start(std::move(start)));
    loop_.SpawnRoot(RenewLease());
    if (interrupted_by_ != 0) co_return Fail(Errc::kCancelled, "interrupted");
    co_return Status();
  }

  // Before anything runs inside, so that no connect finds nobody.
  void OpenWayOut() {
    if (!options_.egress) return;
    egress_ = options_.egress;
    services_.emplace(egress::Services{.loop = loop_,
                                       .workers = *egress_->workers,
                                       .recorder = *egress_->recorder,
                                       .resolver = *egress_->resolver});
    gate_ = std::make_unique<EgressGate>(*services_, egress_->policy, egress_->identity,
                                         handle_->TakeCaptures());
  }

  // The kernel's release, as the guest says.
  aio::Task<std::string> Greet() {
    OpenWayOut();
    SOMA_CO_ASSIGN(Fd wire, handle_->TakeWire());
    runtime::GuestLinkOptions link_options;
    random_.Fill(link_options.secret);
    link_options.next_secret = link_options.secret;
    link_options.epoch = Now();
    if (gate_) {
      link_options.on_request = [this](auto channel, wire::Message request) {
        gate_->Take(std::move(channel), std::move(request));
      };
    }
    link_ = std::make_unique<runtime::GuestLink>(loop_, std::move(wire), std::move(link_options));
    auto identity = co_await link_->Establish(kAgentPatience);
    if (!identity) {
      co_return std::unexpected(std::move(identity).error().While("connecting to the guest agent"));
    }
    wire::Init init;
    init.default_user = options_.user;
    init.hostname = options_.sandbox_id;
    init.wall_time_us = Now();
    const auto reply = co_await link_->Call(std::move(init), kInitPatience);
    if (!reply) co_return std::unexpected(reply.error());
    co_return std::move(identity->kernel_release);
  }

  std::uint64_t Now() {
    return static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count());
  }

  wire::Start StartMessage() const {
    wire::Start start;
    start.profile = options_.profile == runtime::Profile::kStrict ? "strict" : "rooted";
    start.arguments = options_.command;
    for (const auto& [name, value] : options_.environment) {
      start.environment.push_back({.key = name, .value = value});
    }
    start.workdir = options_.subdirectory.empty()
                        ? options_.directory
                        : StrCat(options_.directory, "/", options_.subdirectory);
    start.user = options_.user;
    start.has_terminal = options_.terminal;
    if (options_.time_limit) {
      start.timeout_ms = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(options_.time_limit->count(), 1, UINT32_MAX));
    }
    return start;
  }

  aio::Job RenewLease() {
    for (;;) {
      co_await aio::Sleep(loop_, kRenewEvery);
      // When it fails the sandbox is gone or going, which the link says.
      (void)co_await handle_->RenewLease(kLease);
    }
  }

  aio::Job WatchSignals() {
    for (;;) {
      const auto readable =
          co_await aio::WaitReadable(loop_, signals_.fd().get(), std::chrono::hours(1));
      if (!readable) co_return;
      for (const int signal : signals_.Take()) {
        if (task_) {
          (void)co_await task_->Forward(signal);
        } else if (signal != SIGWINCH) {
          // Nothing of the command's runs yet: what was being prepared ends.
          interrupted_by_ = signal;
          if (link_) link_->Close("interrupted");
        }
      }
    }
  }

  const ForegroundOptions& options_;
  HostSignals& signals_;
  Clock& clock_;
  Random& random_;
  aio::Loop loop_;
  std::unique_ptr<runtime::LaunchedRuntime> runtime_;
  std::unique_ptr<runtime::SandboxHandle> handle_;
  std::shared_ptr<ForegroundEgress> egress_;
  std::optional<egress::Services> services_;
  // Before the link, which calls it.
  std::unique_ptr<EgressGate> gate_;
  std::unique_ptr<runtime::GuestLink> link_;
  std::unique_ptr<ForegroundTask> task_;
  int interrupted_by_ = 0;
  bool limit_passed_ = false;
  Result<ForegroundEnd> result_ = Fail(Errc::kCancelled, "interrupted");
};

}  // namespace

Result<std::shared_ptr<ForegroundEgress>> ForegroundEgress::Create(
    std::shared_ptr<audit::Journal> journal, policy::Policy policy, egress::Identity identity) {
  auto made = std::make_shared<ForegroundEgress>();
  made->journal = std::move(journal);
  made->policy = std::move(policy);
  made->identity = std::move(identity);
  made->workers.emplace();
  made->recorder.emplace(*made->journal, *made->workers);
  SOMA_ASSIGN(made->resolver, egress::MakeResolver());
  return made;
}

Result<ForegroundEnd> RunInForeground(const ForegroundOptions& options, HostSignals& signals,
                                      Clock& clock, Random& random) {
  // Not destroyed: the coroutines that still wait (a renewal, our input) and what they wait on know
  // each other in both directions; the end of the process, which follows, frees them all.
  auto* run = new ForegroundRun(options, signals, clock, random);
  return run->Run();
}

}  // namespace soma::sandbox
