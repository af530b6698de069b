// SPDX-License-Identifier: Apache-2.0
#include "guest/task_table.h"

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/task.h"
#include "wire/request.h"

namespace soma::guest {

Task& TaskTable::Add(std::unique_ptr<Task> task) {
  const pid_t pid = task->pid();
  Task& added = *task;
  tasks_[pid] = std::move(task);
  ++running_;
  return added;
}

Result<Task*> TaskTable::Find(const wire::TaskSelector& selector) {
  if (selector.pid != 0) {
    const auto it = tasks_.find(static_cast<pid_t>(selector.pid));
    if (it != tasks_.end()) return it->second.get();
    return Fail(Errc::kNotFound, StrCat("process with pid ", selector.pid, " not found"));
  }
  for (auto it = tasks_.rbegin(); it != tasks_.rend(); ++it) {
    if (it->second->info().tag == selector.tag && !selector.tag.empty()) return it->second.get();
  }
  return Fail(Errc::kNotFound, StrCat("process with tag ", selector.tag, " not found"));
}

void TaskTable::OnExit(pid_t pid, int wait_status) {
  const auto it = tasks_.find(pid);
  if (it == tasks_.end() || it->second->exited()) return;
  --running_;
  it->second->ended_at = clock_.MonotonicNow();
  it->second->OnExit(wait_status);
}

std::optional<MonotonicTime> TaskTable::Tick() {
  const MonotonicTime now = clock_.MonotonicNow();
  std::optional<MonotonicTime> next;
  for (const auto& [pid, task] : tasks_) {
    if (task->deadline && *task->deadline <= now) task->TimeOut();
    if (task->deadline && (!next || *task->deadline < *next)) next = task->deadline;
  }
  ForgetOld(now);
  return next;
}

void TaskTable::ForgetOld(MonotonicTime now) {
  if (tasks_.size() == running_) return;
  std::size_t bytes = 0;
  std::vector<const Task*> ended;
  for (const auto& [pid, task] : tasks_) {
    if (!task->ended() || task->has_readers()) continue;
    ended.push_back(task.get());
    bytes += task->memory_bytes();
  }
  std::ranges::sort(ended, {}, &Task::ended_at);
  std::size_t count = ended.size();
  for (const Task* task : ended) {
    const bool too_many = count > kEndedMax || (bytes > kEndedBytesMax && count > 1);
    if (!too_many && now - task->ended_at <= kKeepTime) break;
    --count;
    bytes -= task->memory_bytes();
    tasks_.erase(task->pid());
  }
}

}  // namespace soma::guest
