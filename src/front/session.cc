// SPDX-License-Identifier: Apache-2.0
#include "front/session.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <expected>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "front/limit_watch.h"
#include "front/terminal_pump.h"
#include "sys/fd.h"
#include "walls/denied.h"
#include "walls/launch.h"
#include "walls/supervisor.h"

namespace soma::front {

namespace {

using walls::RunningTask;

// Forwarded, or seen to. SIGPIPE is only kept away from us: a closed stdout is an errno here.
constexpr std::array kSignals = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT, SIGPIPE};

// How long a task has to go after its time is over is nothing: SIGKILL is all it gets.
Result<Fd> StartTimer(std::optional<std::chrono::milliseconds> limit) {
  if (!limit) return Fd();
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return std::unexpected(Error::FromErrno(errno, "timerfd_create"));
  itimerspec spec{};
  spec.it_value.tv_sec = limit->count() / 1000;
  spec.it_value.tv_nsec = limit->count() % 1000 * 1'000'000;
  if (timerfd_settime(timer.get(), 0, &spec, nullptr) != 0) {
    return std::unexpected(Error::FromErrno(errno, "timerfd_settime"));
  }
  return timer;
}

// Blocks the signals and gives a descriptor that reads them. After the launch, because the command
// inherits the mask of its launcher.
Result<Fd> CatchSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "signalfd"));
  return fd;
}

class Session {
 public:
  Session(const SessionInputs& in, RunningTask task) : in_(in), task_(std::move(task)) {}

  Status Prepare() {
    SOMA_ASSIGN(signals_, CatchSignals());
    SOMA_ASSIGN(timer_, StartTimer(in_.time_limit));
    if (Fd listener = task_.TakeListener()) {
      supervisor_.emplace(std::move(listener), in_.judge, in_.clock);
    }
    if (Fd terminal = task_.TakeTerminal()) {
      SOMA_ASSIGN(TerminalPump pump, TerminalPump::Create(std::move(terminal)));
      pump_.emplace(std::move(pump));
    }
    return in_.before_start(task_.TakeCapture());
  }

  SessionEnd Run() {
    while (!end_) {
      CollectPolls();
      if (poll(polls_.data(), polls_.size(), -1) < 0 && errno != EINTR) break;
      Serve();
    }
    SessionEnd out{.end = end_ ? *end_ : task_.Wait(), .hits = hits_, .refusals_dropped = 0};
    ReportRefusals();
    if (supervisor_) out.refusals_dropped = supervisor_->denied().dropped();
    if (pump_) pump_->DrainOutput();
    return out;
  }

 private:
  bool IsReady(int fd) const {
    if (fd < 0) return false;
    for (const pollfd& one : polls_) {
      if (one.fd == fd && one.revents != 0) return true;
    }
    return false;
  }

  void CollectPolls() {
    polls_.clear();
    polls_.push_back({signals_.get(), POLLIN, 0});
    if (task_.channel() >= 0) polls_.push_back({task_.channel(), POLLIN, 0});
    if (task_.pidfd() >= 0) polls_.push_back({task_.pidfd(), POLLIN, 0});
    if (timer_) polls_.push_back({timer_.get(), POLLIN, 0});
    if (supervisor_ && !listener_done_)
      polls_.push_back({supervisor_->listener().get(), POLLIN, 0});
    if (pump_) pump_->AppendPolls(polls_);
  }

  void Serve() {
    if (supervisor_ && !listener_done_ && IsReady(supervisor_->listener().get())) ServeListener();
    if (pump_) pump_->Pump(polls_);
    if (IsReady(signals_.get())) ForwardSignals();
    if (IsReady(timer_.get())) {
      hits_.timed_out = true;
      timer_.Reset();
      task_.Kill();
    }
    if (IsReady(task_.channel()) || IsReady(task_.pidfd())) {
      AdvanceTask();
    }
  }

  void AdvanceTask() {
    for (;;) {
      // Before: with the end its cgroups go, and their counters.
      const LimitHits counted = ReadLimitHits(task_.cgroup_directories());
      hits_.out_of_memory_kills = std::max(hits_.out_of_memory_kills, counted.out_of_memory_kills);
      hits_.refused_forks = std::max(hits_.refused_forks, counted.refused_forks);
      const auto event = task_.Advance();
      if (!event) return;
      if (event->kind == walls::TaskEventKind::kEnded) end_ = event->end;
    }
  }

  void ServeListener() {
    for (const pollfd& one : polls_) {
      if (one.fd != supervisor_->listener().get()) continue;
      if ((one.revents & POLLIN) == 0 || !supervisor_->ServeOne()) listener_done_ = true;
    }
    ReportRefusals();
  }

  void ReportRefusals() {
    if (!supervisor_) return;
    for (const walls::Denied& denied : supervisor_->denied().Drain()) in_.on_refusal(denied);
  }

  void ForwardSignals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      // What the terminal sends goes to a whole foreground group, what a person sends to one
      // process.
      const auto whom =
          info.ssi_code == SI_KERNEL ? RunningTask::Whom::kGroup : RunningTask::Whom::kCommand;
      if (signal == SIGPIPE) continue;
      if (signal == SIGWINCH && pump_) {
        pump_->CopyWindowSize();
      } else if (signal == SIGTSTP) {
        task_.Signal(SIGTSTP, RunningTask::Whom::kGroup);
        raise(SIGSTOP);
      } else if (signal == SIGCONT) {
        task_.Signal(SIGCONT, RunningTask::Whom::kGroup);
      } else {
        task_.Signal(signal, whom);
      }
    }
  }

  const SessionInputs& in_;
  RunningTask task_;
  Fd signals_;
  Fd timer_;
  std::optional<walls::Supervisor> supervisor_;
  std::optional<TerminalPump> pump_;
  std::vector<pollfd> polls_;
  LimitHits hits_;
  std::optional<walls::TaskEnd> end_;
  bool listener_done_ = false;
};

}  // namespace

Result<SessionEnd> RunSession(const SessionInputs& inputs) {
  SOMA_ASSIGN(RunningTask task, walls::Launch(inputs.plan, inputs.options));
  Session session(inputs, std::move(task));
  SOMA_TRY(session.Prepare());
  return session.Run();
}

}  // namespace soma::front
