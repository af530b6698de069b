// SPDX-License-Identifier: Apache-2.0
#include "aio/task_group.h"

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"

namespace soma::aio {

struct TaskGroup::State {
  explicit State(Loop& loop) : changed(loop) {}
  std::size_t children = 0;
  Condition changed;
};

TaskGroup::TaskGroup(Loop& loop) : loop_(loop), state_(std::make_shared<State>(loop)) {}
TaskGroup::~TaskGroup() = default;

std::size_t TaskGroup::size() const { return state_->children; }

void TaskGroup::Spawn(Job job) {
  ++state_->children;
  boost::asio::co_spawn(loop_.executor(), std::move(job),
                        [state = state_](const std::exception_ptr& thrown) {
                          // Tasks do not throw; what does is a bug or the end of memory.
                          if (thrown) std::terminate();
                          --state->children;
                          state->changed.NotifyAll();
                        });
}

boost::asio::awaitable<bool> TaskGroup::Join(std::chrono::nanoseconds timeout) {
  const std::shared_ptr<State> state = state_;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (state->children > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds(0)) co_return false;
    co_await state->changed.Wait(left);
  }
  co_return true;
}

}  // namespace soma::aio
