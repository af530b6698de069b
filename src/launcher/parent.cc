// SPDX-License-Identifier: Apache-2.0
#include "launcher/parent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "launcher/log.h"
#include "launcher/paths.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/inet_listener.h"
#include "sys/packet_listener.h"
#include "sys/plain_file.h"
#include "sys/process.h"

namespace soma::launcher {
namespace {

constexpr int kStopPatienceMs = 15'000;
constexpr int kRestartPauseMsMax = 2'000;

struct Held {
  Fd lock;
  Fd socket;
  Fd gate;
  std::vector<Fd> http;
};

Result<Held> Bind(const ParentOptions& options) {
  Held held;
  SOMA_TRY(PreparePaths(options.paths));
  SOMA_ASSIGN(held.lock, sys::OpenFile(options.paths.Lock(), O_RDWR | O_CREAT));
  SOMA_ASSIGN(const bool locked, sys::TryLock(held.lock, sys::LockKind::kExclusive));
  if (!locked) {
    return Fail(Errc::kUnavailable,
                StrCat("another launcher runs with the state directory ", options.paths.state));
  }
  SOMA_ASSIGN(held.socket, sys::ListenPackets(options.paths.Socket()));
  if (geteuid() == 0 && chown(options.paths.Socket().c_str(), options.server_uid, 0) < 0) {
    return std::unexpected(Error::FromErrno(errno, "chown of the launcher's socket"));
  }
  if (!options.gate.empty()) {
    SOMA_ASSIGN(held.gate, sys::OpenFile(options.gate, O_RDWR | O_CREAT));
  }
  for (const std::string& address : options.listen) {
    SOMA_ASSIGN(Fd socket, sys::ListenTcp(address));
    held.http.push_back(std::move(socket));
  }
  return held;
}

class WorkerProcess {
 public:
  static Result<WorkerProcess> Start(const ParentOptions& options, const Held& held) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return std::unexpected(Error::FromErrno(errno, "pipe"));
    const Fd read_end(ends[0]);
    WorkerProcess worker;
    worker.stop_ = Fd(ends[1]);
    sys::ProgramOptions program;
    program.path = options.program;
    program.arguments = options.worker_arguments;
    program.environment = options.worker_environment;
    // Copied above the numbers that they get inside, so that none overwrites another.
    std::vector<Fd> copies;
    const auto pass = [&](const Fd& fd, int inside) {
      constexpr int kAbove = 100;
      copies.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, kAbove));
      program.descriptors.push_back({.fd = copies.back().get(), .inside = inside});
    };
    pass(held.socket, kWorkerListener);
    pass(read_end, kWorkerStop);
    if (held.gate) pass(held.gate, kWorkerGate);
    for (std::size_t i = 0; i < held.http.size(); ++i) {
      pass(held.http[i], kWorkerFirstHttp + static_cast<int>(i));
    }
    SOMA_ASSIGN(worker.process_, sys::StartProgram(program));
    return worker;
  }
  pid_t pid() const { return process_.pid(); }
  const Fd& pidfd() const { return process_.pidfd(); }
  void AskToStop() { stop_.Reset(); }
  void Kill() const { process_.Signal(SIGKILL); }

 private:
  sys::Process process_;
  Fd stop_;
};

enum class WorkerIs : std::uint8_t { kRunning, kDead, kDone };

// Reaps every child that has ended: the worker `pid`, and monitors whose worker died. The worker is
// done when it has left of its own accord, everything cleaned up.
WorkerIs Reap(pid_t pid) {
  WorkerIs worker = WorkerIs::kRunning;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended <= 0) return worker;
    if (ended != pid) continue;
    const bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    worker = done ? WorkerIs::kDone : WorkerIs::kDead;
  }
}

Result<Fd> SignalDescriptor() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "signalfd"));
  return fd;
}

enum class Seen { kNothing, kChild, kStop };

Seen WaitForSignal(const Fd& signals, int timeout_ms) {
  pollfd wait{.fd = signals.get(), .events = POLLIN, .revents = 0};
  if (poll(&wait, 1, timeout_ms) <= 0) return Seen::kNothing;
  Seen seen = Seen::kNothing;
  signalfd_siginfo info{};
  while (read(signals.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) return Seen::kStop;
    seen = Seen::kChild;
  }
  return seen;
}

void EndWorker(WorkerProcess& worker, const Fd& signals) {
  worker.AskToStop();
  constexpr int kStepMs = 100;
  for (int waited = 0; waited < kStopPatienceMs; waited += kStepMs) {
    (void)WaitForSignal(signals, kStepMs);
    if (Reap(worker.pid()) != WorkerIs::kRunning) return;
  }
  Log("the worker does not end and is killed; the next start cleans up");
  worker.Kill();
  pollfd wait{.fd = worker.pidfd().get(), .events = POLLIN, .revents = 0};
  poll(&wait, 1, kStepMs);
  (void)Reap(worker.pid());
}

}  // namespace

Status RunParent(const ParentOptions& options) {
  SOMA_ASSIGN(const Held held, Bind(options));
  SOMA_ASSIGN(const Fd signals, SignalDescriptor());
  // Monitors whose worker died become our children, so that somebody reaps them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int pause_ms = 0;
  for (bool stop = false; !stop;) {
    SOMA_ASSIGN(WorkerProcess worker, WorkerProcess::Start(options, held));
    const time_t started = time(nullptr);
    for (;;) {
      const Seen seen = WaitForSignal(signals, -1);
      if (seen == Seen::kStop) {
        EndWorker(worker, signals);
        stop = true;
        break;
      }
      const WorkerIs now = Reap(worker.pid());
      stop = now == WorkerIs::kDone;
      if (now != WorkerIs::kRunning) break;
    }
    if (stop) break;
    // A worker that dies at once, again and again, must not take the whole machine.
    const bool quickly = time(nullptr) - started < 2;
    pause_ms = quickly ? std::min((pause_ms * 2) + 20, kRestartPauseMsMax) : 0;
    Log(StrCat("the worker has died; the next one starts in ", pause_ms, " ms"));
    if (pause_ms > 0) stop = WaitForSignal(signals, pause_ms) == Seen::kStop;
  }
  unlink(options.paths.Socket().c_str());
  return {};
}

}  // namespace soma::launcher
