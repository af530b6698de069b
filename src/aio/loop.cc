// SPDX-License-Identifier: Apache-2.0
#include "aio/loop.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <expected>
#include <functional>
#include <memory>
#include <utility>

#include "aio/task.h"
#include "base/error.h"

namespace soma::aio {

namespace asio = boost::asio;

struct Loop::State {
  asio::io_context context{1};
  asio::signal_set signals{context};
  std::function<void()> on_termination;
};

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;

void Loop::Run() { state_->context.run(); }
void Loop::Stop() { state_->context.stop(); }
void Loop::Restart() { state_->context.restart(); }
asio::any_io_executor Loop::executor() { return state_->context.get_executor(); }

void Loop::OnTermination(std::function<void()> handler) {
  state_->on_termination = std::move(handler);
  boost::system::error_code ignored;
  state_->signals.add(SIGTERM, ignored);
  state_->signals.add(SIGINT, ignored);
  State* state = state_.get();
  state_->signals.async_wait([state](boost::system::error_code ec, int /*signal*/) {
    if (!ec && state->on_termination) state->on_termination();
  });
}

void Loop::SpawnRoot(Job job) { asio::co_spawn(state_->context, std::move(job), asio::detached); }

Job Sleep(Loop& loop, std::chrono::nanoseconds duration) {
  asio::steady_timer timer(loop.executor(), duration);
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

namespace {

Task<bool> WaitFor(asio::posix::stream_descriptor::wait_type event, Loop& loop, int descriptor,
                   std::chrono::nanoseconds timeout) {
  asio::posix::stream_descriptor watched(loop.executor());
  boost::system::error_code ec;
  watched.assign(descriptor, ec);
  if (ec) co_return std::unexpected(Error::FromErrno(ec.value(), "watching a descriptor"));
  asio::steady_timer timer(loop.executor(), timeout);
  bool expired = false;
  timer.async_wait([&watched, &expired](boost::system::error_code timer_ec) {
    if (timer_ec) return;
    expired = true;
    boost::system::error_code ignored;
    watched.cancel(ignored);
  });
  const auto [wait_ec] = co_await watched.async_wait(event, asio::as_tuple(asio::use_awaitable));
  // Not closed here: the caller owns the descriptor.
  (void)watched.release();
  // The timer's handler holds references into this frame: let it run before they go.
  timer.cancel();
  co_await asio::post(loop.executor(), asio::use_awaitable);
  if (expired) co_return false;
  if (wait_ec)
    co_return std::unexpected(Error::FromErrno(wait_ec.value(), "waiting for a descriptor"));
  co_return true;
}

}  // namespace

Task<bool> WaitReadable(Loop& loop, int descriptor, std::chrono::nanoseconds timeout) {
  return WaitFor(asio::posix::stream_descriptor::wait_read, loop, descriptor, timeout);
}

Task<bool> WaitWritable(Loop& loop, int descriptor, std::chrono::nanoseconds timeout) {
  return WaitFor(asio::posix::stream_descriptor::wait_write, loop, descriptor, timeout);
}

}  // namespace soma::aio
