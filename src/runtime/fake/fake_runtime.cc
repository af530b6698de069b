// SPDX-License-Identifier: Apache-2.0
#include "runtime/fake/fake_runtime.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "runtime/runtime.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"

namespace soma::runtime {

// The guest agent as our child. Whoever asks whether it lives ends it when its lease is over.
class FakeProcess {
 public:
  FakeProcess(sys::Process process, std::chrono::seconds lease) : process_(std::move(process)) {
    LeaseFor(lease);
  }
  ~FakeProcess() { Kill("killed"); }
  FakeProcess(const FakeProcess&) = delete;
  FakeProcess& operator=(const FakeProcess&) = delete;

  bool Lives() {
    if (dead_) return false;
    if (const auto ended = process_.TryWait(); !ended || *ended) {
      dead_ = true;
      how_ = "pid 1 has ended";
    } else if (std::chrono::steady_clock::now() > lease_end_) {
      Kill("lease ended");
    }
    return !dead_;
  }
  void Kill(std::string_view how) {
    if (dead_) return;
    process_.Signal(SIGKILL);
    (void)process_.Wait();
    dead_ = true;
    how_ = how;
  }
  void LeaseFor(std::chrono::seconds from_now) {
    lease_end_ = std::chrono::steady_clock::now() + from_now;
  }
  const std::string& how() const { return how_; }

 private:
  sys::Process process_;
  std::chrono::steady_clock::time_point lease_end_;
  bool dead_ = false;
  std::string how_;
};

namespace {

constexpr int kWireDescriptor = 3;
constexpr std::chrono::milliseconds kLifePause(20);

// In the child: only async-signal-safe calls.
[[noreturn]] void BecomeGuest(int wire, const char* guest) noexcept {
  sys::DieWithParent(SIGKILL);
  ::setsid();
  if (wire == kWireDescriptor) {
    ::fcntl(wire, F_SETFD, 0);
  } else {
    ::dup2(wire, kWireDescriptor);
  }
  sys::CloseFrom(kWireDescriptor + 1);
  const char* const arguments[] = {"soma-guest", "--wire=socket", nullptr};
  const char* const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", nullptr};
  ::execve(guest, const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  ::_exit(127);
}

class FakeSandbox final : public SandboxHandle {
 public:
  FakeSandbox(aio::Loop& loop, Fd wire, std::shared_ptr<FakeProcess> process)
      : loop_(loop), wire_(std::move(wire)), process_(std::move(process)) {}

  Result<Fd> TakeWire() override {
    if (!wire_) return Fail(Errc::kFailedPrecondition, "the wire was taken already");
    return std::move(wire_);
  }
  CaptureSockets TakeCaptures() override { return {}; }

  aio::Task<Death> WaitDeath(std::chrono::nanoseconds timeout) override {
    const std::shared_ptr<FakeProcess> process = process_;
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (process->Lives()) {
      if (std::chrono::steady_clock::now() > end) {
        co_return Fail(Errc::kDeadlineExceeded, "the sandbox still lives");
      }
      co_await aio::Sleep(loop_, kLifePause);
    }
    co_return Death{.reason = process->how()};
  }
  aio::Task<void> RenewLease(std::chrono::seconds from_now) override {
    process_->LeaseFor(from_now);
    co_return Status();
  }
  aio::Task<void> Freeze() override { co_return NotHere(); }
  aio::Task<void> Thaw() override { co_return NotHere(); }
  aio::Task<void> Snapshot(std::string /*name*/) override { co_return NotHere(); }
  aio::Task<Stats> GetStats() override { co_return NotHere(); }
  aio::Task<void> Stop() override {
    process_->Kill("killed");
    co_return Status();
  }

 private:
  static std::unexpected<Error> NotHere() {
    return Fail(Errc::kUnimplemented, "the fake level can't do that");
  }

  aio::Loop& loop_;
  Fd wire_;
  std::shared_ptr<FakeProcess> process_;
};

}  // namespace

aio::Task<std::unique_ptr<SandboxHandle>> FakeRuntime::Start(StartRequest request) {
  if (request.template_id != "base") {
    co_return Fail(Errc::kNotFound,
                   StrCat("template '", EscapeForTerminal(request.template_id), "' not found"));
  }
  if (Lives(request.sandbox_id))
    co_return Fail(Errc::kAlreadyExists, "a sandbox of this name lives");
  SOMA_CO_ASSIGN(sys::SocketPair pair, sys::MakeSocketPair(SOCK_STREAM));
  const std::string guest = guest_;
  // As pid 1 of a pid namespace where that is allowed, so that its end takes everything along.
  const bool is_root = ::geteuid() == 0;
  const sys::CloneResult child = sys::Clone(is_root ? CLONE_NEWPID : 0);
  if (child.pid == 0) BecomeGuest(pair.second.get(), guest.c_str());
  if (child.pid < 0) co_return std::unexpected(Error::FromErrno(child.error, "clone"));
  auto process =
      std::make_shared<FakeProcess>(sys::Process(child.pid, Fd(child.pidfd)), request.lease);
  processes_[request.sandbox_id] = process;
  co_return std::make_unique<FakeSandbox>(loop_, std::move(pair.first), std::move(process));
}

bool FakeRuntime::Lives(const std::string& sandbox_id) {
  const auto found = processes_.find(sandbox_id);
  const auto process = found == processes_.end() ? nullptr : found->second.lock();
  return process && process->Lives();
}

aio::Task<std::vector<std::string>> FakeRuntime::List() {
  std::vector<std::string> ids;
  std::erase_if(processes_, [this](const auto& item) { return !Lives(item.first); });
  for (const auto& [id, process] : processes_) ids.push_back(id);
  co_return ids;
}

aio::Task<std::unique_ptr<SandboxHandle>> FakeRuntime::Attach(std::string /*sandbox_id*/,
                                                              GuardToken /*token*/) {
  co_return Fail(Errc::kNotFound, "the fake level has no sandboxes of other servers");
}

aio::Task<void> FakeRuntime::StopUnknown(std::string sandbox_id) {
  if (Lives(sandbox_id)) processes_[sandbox_id].lock()->Kill("killed");
  co_return Status();
}

}  // namespace soma::runtime
