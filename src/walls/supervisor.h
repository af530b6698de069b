// SPDX-License-Identifier: Apache-2.0
// Supervisor: serves one seccomp listener. It reads what a waiting call wants, asks the Judge,
// answers, and collects the refusals.
//
// It runs outside the sandbox, in the process that polls `listener()`; single-threaded; reads
// foreign memory only by bounded copies (process_vm_readv) and foreign paths only below the
// caller's own root. It never waits for the sandbox. When this object is destroyed the listener
// closes, and every notified call in the sandbox answers ENOSYS: a dead supervisor writes nothing,
// connects nowhere and executes nothing. (The launcher of the task also ties the task's life to
// ours.)
//
//   Supervisor supervisor(std::move(listener), judge, clock);
//   while (…) { poll(supervisor.listener().get(), …); if (readable) supervisor.ServeOne(); }
//   if (POLLHUP) … all tasks with the filter are gone
#ifndef SOMA_WALLS_SUPERVISOR_H_
#define SOMA_WALLS_SUPERVISOR_H_

#include <cstdint>

#include "base/clock.h"
#include "sys/fd.h"
#include "walls/denied.h"
#include "walls/judge.h"

namespace soma::walls {

class Supervisor {
 public:
  // `judge` and `clock` are borrowed and outlive the supervisor.
  Supervisor(Fd listener, Judge& judge, Clock& clock);

  // For poll(2): POLLIN when a call waits, POLLHUP when the last task with the filter is gone. On
  // 6.1 "gone" means reaped, so a loop that also has to reap must poll the task's pidfd, too.
  const Fd& listener() const { return listener_; }

  // Serves the next waiting call; blocks when none waits. False when there is nothing more to serve
  // (every task is gone) or the listener is broken.
  bool ServeOne();

  DeniedQueue& denied() { return denied_; }
  std::uint64_t served() const { return served_; }

 private:
  void Answer(std::uint64_t id, const Verdict& verdict, const Request& request);

  Fd listener_;
  Judge& judge_;
  Clock& clock_;
  DeniedQueue denied_;
  std::uint64_t served_ = 0;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_SUPERVISOR_H_
