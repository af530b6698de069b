// SPDX-License-Identifier: Apache-2.0
#include "sys/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::sys {

ProcessEnd ProcessEndFromStatus(int wait_status, const rusage& usage) noexcept {
  ProcessEnd end;
  end.exited = WIFEXITED(wait_status);
  end.code = end.exited ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status);
  end.core_dumped = !end.exited && WCOREDUMP(wait_status);
  end.usage = usage;
  return end;
}

namespace {

// clone(2) with the order of arguments of x86-64; the pidfd arrives where the parent's tid would.
pid_t CloneTheOldWay(const clone_args& args, int* pidfd) noexcept {
  return static_cast<pid_t>(
      ::syscall(SYS_clone, args.flags | args.exit_signal, nullptr, pidfd, nullptr, nullptr));
}

}  // namespace

CloneResult Clone(std::uint64_t flags, int cgroup_fd) noexcept {
  int pidfd = -1;
  clone_args args{};
  args.flags = flags | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if ((flags & CLONE_PARENT) != 0) args.exit_signal = 0;  // clone3(2): must be 0 with CLONE_PARENT
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &args, sizeof args));
  // Our own filters answer so: clone3's flags lie behind a pointer, where a filter can't look.
  if (pid < 0 && errno == ENOSYS && cgroup_fd < 0) pid = CloneTheOldWay(args, &pidfd);
  if (pid < 0) return {.pid = -1, .pidfd = -1, .error = errno};
  return {.pid = pid, .pidfd = pid > 0 ? pidfd : -1, .error = 0};
}

Result<Process> Process::Open(pid_t pid) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return std::unexpected(Error::FromErrno(errno, StrCat("pidfd_open ", pid)));
  return Process(pid, std::move(pidfd));
}

bool Process::Signal(int signal) const noexcept {
  return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) == 0;
}

Result<std::optional<ProcessEnd>> Process::WaitWith(int options) {
  // wait4 by number is safe here: a child keeps its pid until we reap it, and nobody else does.
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t got = ::wait4(pid_, &status, options | __WALL, &usage);
    if (got == pid_) return ProcessEndFromStatus(status, usage);
    if (got == 0) return std::optional<ProcessEnd>();
    if (errno != EINTR) return std::unexpected(Error::FromErrno(errno, StrCat("wait4 ", pid_)));
  }
}

Result<ProcessEnd> Process::Wait() {
  SOMA_ASSIGN(const auto end, WaitWith(0));
  return *end;
}

Result<std::optional<ProcessEnd>> Process::TryWait() { return WaitWith(WNOHANG); }

int DieWithParent(int signal) noexcept {
  return ::prctl(PR_SET_PDEATHSIG, signal) == 0 ? 0 : errno;
}

int CloseFrom(unsigned first) noexcept {
  return ::syscall(SYS_close_range, first, ~0U, 0) == 0 ? 0 : errno;
}

int CloseFromBut(unsigned first, std::span<const int> kept) noexcept {
  for (const int one : kept) {
    const auto number = static_cast<unsigned>(one);
    if (number > first && ::syscall(SYS_close_range, first, number - 1, 0) != 0) return errno;
    first = number + 1;
  }
  return CloseFrom(first);
}

}  // namespace soma::sys
