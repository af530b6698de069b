// SPDX-License-Identifier: Apache-2.0
// Processes by pidfd: starting one in new namespaces, signalling, waiting. A number is never
// signalled: it may be somebody else's by now.
#ifndef SOMA_SYS_PROCESS_H_
#define SOMA_SYS_PROCESS_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// How a process ended, as wait4(2) says it.
struct ProcessEnd {
  bool exited = false;  // else killed by a signal
  int code = 0;         // exit code or signal number
  bool core_dumped = false;
  rusage usage{};
};
ProcessEnd ProcessEndFromStatus(int wait_status, const rusage& usage) noexcept;

// What Clone answers, without allocation: in the parent `pid` > 0 and a close-on-exec pidfd; in the
// child `pid` is 0; on failure `pid` is -1 and `error` an errno.
struct CloneResult {
  pid_t pid = -1;
  int pidfd = -1;
  int error = 0;
};

// clone3(2) like fork, with CLONE_NEW* (and CLONE_PARENT) from `flags`. `cgroup_fd` >= 0 starts it
// in that v2 cgroup. The child must only make async-signal-safe calls. The caller is
// single-threaded.
CloneResult Clone(std::uint64_t flags, int cgroup_fd = -1) noexcept;

// Owns one child process: its pidfd and the duty to reap it. Destroying an unreaped one leaves the
// zombie to whoever adopts it; it never blocks.
class Process {
 public:
  Process() = default;
  Process(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  Process& operator=(Process&& other) noexcept {
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    return *this;
  }
  ~Process() = default;

  // For a process that isn't our child, or whose clone gave no pidfd. Racy unless the caller knows
  // that the pid can't have been reaped.
  static Result<Process> Open(pid_t pid);

  pid_t pid() const { return pid_; }
  const Fd& pidfd() const { return pidfd_; }

  // True when the signal was sent; false when the process is gone or may not be signalled.
  bool Signal(int signal) const noexcept;
  // Blocks until it ended, and reaps it. Children only.
  Result<ProcessEnd> Wait();
  // Nullopt while it runs.
  Result<std::optional<ProcessEnd>> TryWait();

 private:
  Result<std::optional<ProcessEnd>> WaitWith(int options);

  pid_t pid_ = -1;
  Fd pidfd_;
};

// Raw calls for between fork and exec; 0 or an errno.
int DieWithParent(int signal) noexcept;
// Closes every descriptor from `first` on.
int CloseFrom(unsigned first) noexcept;
// The same, but those in `kept`, which ascend.
int CloseFromBut(unsigned first, std::span<const int> kept) noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_PROCESS_H_
