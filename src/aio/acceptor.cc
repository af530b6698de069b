// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <expected>
#include <memory>
#include <utility>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::aio {

namespace asio = boost::asio;

struct Acceptor::State {
  State(Loop& owner, Fd listener) : loop(owner), descriptor(owner.executor()) {
    boost::system::error_code ignored;
    descriptor.assign(listener.Release(), ignored);
  }
  Loop& loop;
  asio::posix::stream_descriptor descriptor;
};

Acceptor::Acceptor(Loop& loop, Fd listener)
    : state_(std::make_unique<State>(loop, std::move(listener))) {}
Acceptor::~Acceptor() = default;

void Acceptor::Close() {
  boost::system::error_code ignored;
  state_->descriptor.close(ignored);
}

namespace {
// accept(2), "Error handling": errors of the new connection itself are to be retried.
bool IsTransient(int error) {
  return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
         error == EHOSTUNREACH || error == ENETUNREACH;
}
bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}
}  // namespace

Task<Fd> Acceptor::Accept() {
  for (;;) {
    if (!state_->descriptor.is_open()) {
      co_return Fail(Errc::kCancelled, "the listener is closed");
    }
    const int raw = ::accept4(state_->descriptor.native_handle(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (raw >= 0) co_return Fd(raw);
    const int error = errno;
    if (IsTransient(error)) continue;
    if (IsShortage(error)) {
      co_await Sleep(state_->loop, std::chrono::milliseconds(50));
      continue;
    }
    if (error != EAGAIN) co_return std::unexpected(Error::FromErrno(error, "accept"));
    const auto [ec] = co_await state_->descriptor.async_wait(
        asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (ec) co_return Fail(Errc::kCancelled, "the listener is closed");
  }
}

}  // namespace soma::aio
