// SPDX-License-Identifier: Apache-2.0
// TaskGroup: the children of one object. Nothing is detached: whoever spawns holds the group and
// waits for it before the things that the children use go away. A child is ended by closing what it
// waits for (a stream, a Condition); the group does not interrupt it.
#ifndef SOMA_AIO_TASK_GROUP_H_
#define SOMA_AIO_TASK_GROUP_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "aio/loop.h"
#include "aio/task.h"

namespace soma::aio {

class TaskGroup {
 public:
  explicit TaskGroup(Loop& loop);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void Spawn(Job job);
  std::size_t size() const;
  // True when all children have ended within the time.
  boost::asio::awaitable<bool> Join(std::chrono::nanoseconds timeout);

 private:
  struct State;
  Loop& loop_;
  std::shared_ptr<State> state_;
};

}  // namespace soma::aio

#endif  // SOMA_AIO_TASK_GROUP_H_
