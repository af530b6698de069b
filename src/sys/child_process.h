// SPDX-License-Identifier: Apache-2.0
// Child programs: started by posix_spawn (no copy of our page tables), held by a pidfd, and
// recognised after a restart of ours by pid and start time.
#ifndef SOMA_SYS_CHILD_PROCESS_H_
#define SOMA_SYS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/process.h"

namespace soma::sys {

// Who a process is, beyond the reuse of its number: field 22 of /proc/PID/stat, proc(5).
struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};
// kNotFound when there is no such process.
Result<ProcessIdentity> IdentityOf(pid_t pid);
// That very process by its pidfd, if it still exists; kNotFound otherwise.
Result<Process> OpenProcess(const ProcessIdentity& identity);

struct PassedFd {
  int fd = -1;      // borrowed
  int inside = -1;  // its number in the program
};

struct ProgramOptions {
  std::string path;
  std::vector<std::string> arguments;  // with argv[0]
  std::vector<std::string> environment;
  std::vector<PassedFd>
      descriptors;  // `inside` numbers above every `fd`, or equal to it, never cross
  // A session of its own: what a terminal sends to our process group does not reach it.
  bool own_session = false;
};

// Everything but the standard streams and `descriptors` is close-on-exec by the rule of this house.
Result<Process> StartProgram(const ProgramOptions& options);

// fork(2), for a program with one thread: the child goes on here with a copy of everything, and
// ends by _exit(2). Nullopt in the child.
Result<std::optional<Process>> ForkProcess();

// Runs to the end; an exit other than 0 is kInternal, longer than `patience` is kDeadlineExceeded
// (after SIGKILL). Blocks.
Status RunProgram(const ProgramOptions& options, std::chrono::milliseconds patience);

}  // namespace soma::sys

#endif  // SOMA_SYS_CHILD_PROCESS_H_
