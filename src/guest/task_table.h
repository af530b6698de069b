// SPDX-License-Identifier: Apache-2.0
// TaskTable: all tasks that run, and those that ended a short while ago, so that their output and
// exit code can still be asked for (a client that lost its server comes back and attaches).
//
// An ended task is kept for kKeepTime, and at most kEndedMax of them with kEndedBytesMax of output;
// beyond that the oldest is forgotten. One that somebody still reads is kept whatever its age.
#ifndef SOMA_GUEST_TASK_TABLE_H_
#define SOMA_GUEST_TASK_TABLE_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "guest/task.h"
#include "wire/request.h"

namespace soma::guest {

class TaskTable {
 public:
  static constexpr std::size_t kRunningMax = 4096;
  static constexpr std::size_t kEndedMax = 256;
  static constexpr std::size_t kEndedBytesMax = std::size_t{4} * 1024 * 1024;
  static constexpr std::chrono::minutes kKeepTime{5};

  explicit TaskTable(Clock& clock) : clock_(clock) {}

  // An ended task whose pid was given out anew is forgotten.
  Task& Add(std::unique_ptr<Task> task);
  // kNotFound "process with pid 5 not found" (E2B's words). Of several with one tag, the newest.
  Result<Task*> Find(const wire::TaskSelector& selector);
  void OnExit(pid_t pid, int wait_status);
  // Enforces timeouts and forgets what is too old. Gives the time of the next timeout.
  std::optional<MonotonicTime> Tick();
  std::size_t running_count() const { return running_; }

  auto begin() { return tasks_.begin(); }
  auto end() { return tasks_.end(); }

 private:
  void ForgetOld(MonotonicTime now);

  Clock& clock_;
  std::map<pid_t, std::unique_ptr<Task>> tasks_;
  std::size_t running_ = 0;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_TASK_TABLE_H_
