// SPDX-License-Identifier: Apache-2.0
#include "aio/condition.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "aio/loop.h"

namespace soma::aio {

namespace asio = boost::asio;

struct Condition::Waiters {
  explicit Waiters(Loop& owner) : loop(owner) {}
  Loop& loop;
  std::vector<asio::steady_timer*> timers;
};

namespace {

// In the list for as long as the wait lives. A coroutine that is never resumed, because its loop
// ended, leaves it as well.
class Listed {
 public:
  Listed(std::vector<asio::steady_timer*>& timers, asio::steady_timer& timer)
      : timers_(timers), timer_(timer) {
    timers_.push_back(&timer_);
  }
  ~Listed() { std::erase(timers_, &timer_); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  std::vector<asio::steady_timer*>& timers_;
  asio::steady_timer& timer_;
};

}  // namespace

Condition::Condition(Loop& loop) : waiters_(std::make_shared<Waiters>(loop)) {}

Condition::~Condition() { NotifyAll(); }

void Condition::NotifyAll() {
  for (asio::steady_timer* timer : waiters_->timers) timer->cancel();
}

asio::awaitable<bool> Condition::Wait(std::chrono::nanoseconds timeout) {
  // Held here, so that the list lives until the last waiter has left it.
  const std::shared_ptr<Waiters> waiters = waiters_;
  const std::chrono::nanoseconds longest = std::chrono::hours(24);
  asio::steady_timer timer(waiters->loop.executor(), std::min(timeout, longest));
  const Listed listed(waiters->timers, timer);
  const auto [ec] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return ec == asio::error::operation_aborted;
}

}  // namespace soma::aio
