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
namespace {

constexpr int kWireDescriptor = 3;

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
  FakeSandbox(aio::Loop& loop, Fd wire, sys::Process process)
      : loop_(loop), wire_(std::move(wire)), process_(std::move(process)) {}
  ~FakeSandbox() override { Kill(); }
  FakeSandbox(const FakeSandbox&) = delete;
  FakeSandbox& operator=(const FakeSandbox&) = delete;

  Result<Fd> TakeWire() override {
    if (!wire_) return Fail(Errc::kFailedPrecondition, "the wire was taken already");
    return std::move(wire_);
  }
  CaptureSockets TakeCaptures() override { return {}; }

  aio::Task<Death> WaitDeath(std::chrono::nanoseconds timeout) override {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!dead_) {
      SOMA_CO_ASSIGN(const auto ended, process_.TryWait());
      if (ended) dead_ = true;
      if (dead_) break;
      if (std::chrono::steady_clock::now() > end) {
        co_return Fail(Errc::kDeadlineExceeded, "the sandbox still lives");
      }
      co_await aio::Sleep(loop_, std::chrono::milliseconds(20));
    }
    co_return Death{.reason = "pid 1 has ended"};
  }
  aio::Task<void> RenewLease(std::chrono::seconds /*from_now*/) override { co_return Status(); }
  aio::Task<void> Freeze() override { co_return NotHere(); }
  aio::Task<void> Thaw() override { co_return NotHere(); }
  aio::Task<void> Snapshot(std::string /*name*/) override { co_return NotHere(); }
  aio::Task<Stats> GetStats() override { co_return NotHere(); }
  aio::Task<void> Stop() override {
    Kill();
    co_return Status();
  }

 private:
  static std::unexpected<Error> NotHere() {
    return Fail(Errc::kUnimplemented, "the fake level can't do that");
  }
  void Kill() {
    if (dead_) return;
    process_.Signal(SIGKILL);
    (void)process_.Wait();
    dead_ = true;
  }

  aio::Loop& loop_;
  Fd wire_;
  sys::Process process_;
  bool dead_ = false;
};

}  // namespace

aio::Task<std::unique_ptr<SandboxHandle>> FakeRuntime::Start(StartRequest request) {
  if (request.template_id != "base") {
    co_return Fail(Errc::kNotFound,
                   StrCat("template '", EscapeForTerminal(request.template_id), "' not found"));
  }
  SOMA_CO_ASSIGN(sys::SocketPair pair, sys::MakeSocketPair(SOCK_STREAM));
  const std::string guest = guest_;
  // As pid 1 of a pid namespace where that is allowed, so that its end takes everything along.
  const bool is_root = ::geteuid() == 0;
  const sys::CloneResult child = sys::Clone(is_root ? CLONE_NEWPID : 0);
  if (child.pid == 0) BecomeGuest(pair.second.get(), guest.c_str());
  if (child.pid < 0) co_return std::unexpected(Error::FromErrno(child.error, "clone"));
  co_return std::make_unique<FakeSandbox>(loop_, std::move(pair.first),
                                          sys::Process(child.pid, Fd(child.pidfd)));
}

aio::Task<std::vector<std::string>> FakeRuntime::List() { co_return std::vector<std::string>(); }

aio::Task<std::unique_ptr<SandboxHandle>> FakeRuntime::Attach(std::string /*sandbox_id*/,
                                                              GuardToken /*token*/) {
  co_return Fail(Errc::kNotFound, "the fake level has no sandboxes of other servers");
}

aio::Task<void> FakeRuntime::StopUnknown(std::string /*sandbox_id*/) { co_return Status(); }

}  // namespace soma::runtime
