// SPDX-License-Identifier: Apache-2.0
// Launch: applies a WallPlan, step by named step, and gives the running task.
//
// How to use:
//   SOMA_TRY(Validate(plan));
//   SOMA_ASSIGN(RunningTask task, Launch(plan, {.descriptors = {wire.get()}}));
//   // Returns when the walls stand and the command is about to be executed. Nothing of the task
//   has run. Fd listener = task.TakeListener();              // if plan.seccomp.notify: serve it
//   from now on, Fd terminal = task.TakeTerminal();              //   the execve of the command
//   waits for that for (;;) {                                      // an event loop of your own …
//     pollfd fds[] = {{task.channel(), POLLIN, 0}, {task.pidfd(), POLLIN, 0}, …};   // -1 is
//     ignored poll(fds, …); if (auto event = task.Advance(); event && event->kind ==
//     TaskEventKind::kEnded) break;
//   }
//   const TaskEnd end = task.Wait();                // … or only this, when nothing has to be
//   served return end.ExitCode();
//
// The launching process must be single-threaded and small (fork copies its page tables). Between
// fork and exec nothing allocates, locks or logs. The task dies with the launching process
// (PR_SET_PDEATHSIG and a socket that init watches), however that ends; a plan without a pid
// namespace can promise this only for the children that init can still find.
//
// Who needs what: as an ordinary user everything but id maps of more than the own id, id-mapped
// mounts, erofs, cgroups without delegation, and `groups`. As root the sources are opened by the
// launcher, so that the task's host id needs no way to them.
#ifndef SOMA_WALLS_LAUNCH_H_
#define SOMA_WALLS_LAUNCH_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/cpu_affinity.h"
#include "sys/fd.h"
#include "walls/plan.h"
#include "walls/step.h"

namespace soma::walls {

struct LaunchOptions {
  // Slot i of the plan. Borrowed: they stay open in the launcher.
  std::vector<int> descriptors;
  // When the launcher keeps itself on one CPU: released again for the command. Borrowed for the
  // call.
  sys::StayOnThisCpu* stay = nullptr;
};

enum class TaskEndKind : std::uint8_t {
  kExited,      // `code` is the exit code
  kSignalled,   // `code` is the signal
  kNotStarted,  // `failure` says which step refused (kExecute with ENOENT, EACCES, …)
  kLost,  // the walls went down before init could report: killed from outside, or out of memory
};

struct TaskEnd {
  TaskEndKind kind = TaskEndKind::kLost;
  int code = 0;
  bool core_dumped = false;
  StepFailure failure;
  // Of the command and all of its descendants that were reaped; zero for kLost.
  std::uint64_t user_time_us = 0;
  std::uint64_t system_time_us = 0;
  std::uint64_t resident_bytes_max = 0;

  // As a shell would say it: the code, 128 + signal, 127 not found, 126 can't be executed, 125 for
  // every failure of ours, 137 for kLost.
  int ExitCode() const;
  // "exited with 3", "killed by SIGSEGV", "execute: ENOENT".
  std::string Describe() const;
};

enum class TaskEventKind : std::uint8_t {
  kStarted,  // the command was executed
  kEnded,
};
struct TaskEvent {
  TaskEventKind kind = TaskEventKind::kStarted;
  TaskEnd end;  // kEnded
};

// Listening sockets inside the task's network namespace, for the broker outside
// (NetworkKind::kCapture). A connect to any address arrives at `tcp4`/`tcp6` with getsockname() =
// the address it was meant for.
struct CaptureSockets {
  Fd tcp4;
  Fd tcp6;
  Fd dns_udp4;  // bound to port 53 of every address
  Fd dns_tcp4;
};

// The launcher's side of one task. Move-only. Destroying it kills the task without waiting.
class RunningTask {
 public:
  struct State;  // internal
  RunningTask(RunningTask&&) noexcept;
  RunningTask& operator=(RunningTask&&) noexcept;
  ~RunningTask();

  // Of init, or of the command when the plan has no init. In the launcher's pid namespace.
  pid_t pid() const;
  // To poll; -1 once there is nothing more to come from it.
  int channel() const;
  int pidfd() const;

  // Takes what has come; never blocks. Nothing left after kEnded.
  std::optional<TaskEvent> Advance();
  // Blocks until the end; the command and every process of its pid namespace is gone then, and the
  // cgroups that Launch made are removed.
  TaskEnd Wait();

  // To the command only (`group` false) or to its process group. Quiet when it has ended already.
  enum class Whom : std::uint8_t { kCommand, kGroup };
  void Signal(int signal, Whom whom = Whom::kCommand);
  // SIGKILL to everything inside. The end is then kLost, or what came before.
  void Kill();

  // Empty unless the plan asked for it, and after the first call.
  Fd TakeListener();
  Fd TakeTerminal();
  CaptureSockets TakeCapture();
  // The directories of the cgroups that Launch made, one a hierarchy; for counters and events.
  const std::vector<std::string>& cgroup_directories() const;

 private:
  friend Result<RunningTask> Launch(const WallPlan& plan, const LaunchOptions& options);
  explicit RunningTask(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Validates, then applies. On failure nothing is left behind, and the message names the step and
// the item: "mount item /proc: Operation not permitted".
Result<RunningTask> Launch(const WallPlan& plan, const LaunchOptions& options);

}  // namespace soma::walls

#endif  // SOMA_WALLS_LAUNCH_H_
