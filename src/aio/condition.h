// SPDX-License-Identifier: Apache-2.0
// Condition: lets coroutines of one loop wait until another says that something changed.
//
//   while (queue.empty()) co_await changed.Wait(std::chrono::seconds(5));
//
// One thread, so nothing is lost between the test and the wait. A waiter is woken by NotifyAll, by
// its timeout, or by the Condition's end; it tests again. The owner must outlive its waiters or
// wake them into code that no longer touches it.
#ifndef SOMA_AIO_CONDITION_H_
#define SOMA_AIO_CONDITION_H_

#include <chrono>
#include <memory>

#include "aio/loop.h"
#include "aio/task.h"

namespace soma::aio {

class Condition {
 public:
  explicit Condition(Loop& loop);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void NotifyAll();
  // False when the timeout passed. At most a day at a time.
  boost::asio::awaitable<bool> Wait(std::chrono::nanoseconds timeout);

 private:
  struct Waiters;
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace soma::aio

#endif  // SOMA_AIO_CONDITION_H_
