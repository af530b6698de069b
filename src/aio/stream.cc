// SPDX-License-Identifier: Apache-2.0
#include "aio/stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::aio {

namespace asio = boost::asio;

namespace {

// One direction's deadline: a timer that, when it fires, cancels what the socket is doing. Shared
// with the timer's handler, so that a handler which runs after the stream's end finds it gone.
class SocketStream final : public ByteStream {
 public:
  SocketStream(Loop& loop, Fd socket) : state_(std::make_shared<State>(loop)) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    int family = AF_INET;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      family = address.ss_family;
    }
    const int one = 1;
    if (family != AF_UNIX) {
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    const int flags = ::fcntl(socket.get(), F_GETFL);
    ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
    boost::system::error_code ignored;
    state_->socket.assign(asio::generic::stream_protocol(family, 0), socket.Release(), ignored);
  }
  ~SocketStream() override { Close(); }
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  Task<std::size_t> Read(std::span<std::uint8_t> out) override {
    const std::shared_ptr<State> state = state_;
    if (state->read.expired) co_return Expired();
    const auto [ec, size] = co_await state->socket.async_read_some(
        asio::buffer(out.data(), out.size()), asio::as_tuple(asio::use_awaitable));
    if (ec == asio::error::eof) co_return std::size_t{0};
    if (ec) co_return Failure(ec, state->read.expired, "reading from a connection");
    co_return size;
  }

  Task<void> Write(ByteView bytes) override {
    const std::shared_ptr<State> state = state_;
    if (state->write.expired) co_return Expired();
    const auto [ec, size] =
        co_await asio::async_write(state->socket, asio::buffer(bytes.data(), bytes.size()),
                                   asio::as_tuple(asio::use_awaitable));
    if (ec) co_return Failure(ec, state->write.expired, "writing to a connection");
    co_return Status();
  }

  void SetReadDeadline(std::chrono::nanoseconds from_now) override { Arm(&State::read, from_now); }
  void SetWriteDeadline(std::chrono::nanoseconds from_now) override {
    Arm(&State::write, from_now);
  }

  void ShutdownWrite() override {
    boost::system::error_code ignored;
    state_->socket.shutdown(asio::socket_base::shutdown_send, ignored);
  }

  void Close() override {
    state_->read.timer.cancel();
    state_->write.timer.cancel();
    boost::system::error_code ignored;
    state_->socket.close(ignored);
  }

  void Reset() override {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    if (state_->socket.is_open()) {
      ::setsockopt(state_->socket.native_handle(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    Close();
  }

 private:
  struct Deadline {
    explicit Deadline(Loop& loop) : timer(loop.executor()) {}
    asio::steady_timer timer;
    bool expired = false;
  };
  struct State {
    explicit State(Loop& loop) : socket(loop.executor()), read(loop), write(loop) {}
    asio::generic::stream_protocol::socket socket;
    Deadline read;
    Deadline write;
  };

  void Arm(Deadline State::* which, std::chrono::nanoseconds from_now) {
    Deadline& deadline = (*state_).*which;
    deadline.expired = false;
    deadline.timer.expires_after(from_now);
    deadline.timer.async_wait(
        [weak = std::weak_ptr<State>(state_), which](boost::system::error_code ec) {
          const std::shared_ptr<State> state = weak.lock();
          if (ec || !state) return;
          ((*state).*which).expired = true;
          boost::system::error_code ignored;
          // Ends both directions: a connection of which one side is stuck is of no use.
          state->socket.cancel(ignored);
        });
  }

  static std::unexpected<Error> Expired() {
    return Fail(Errc::kDeadlineExceeded, "the connection was idle for too long");
  }
  static std::unexpected<Error> Failure(const boost::system::error_code& ec, bool expired,
                                        std::string_view what) {
    if (ec == asio::error::operation_aborted || ec == asio::error::bad_descriptor) {
      if (expired) return Expired();
      return Fail(Errc::kCancelled, "the connection was closed on our side");
    }
    return std::unexpected(Error::FromErrno(ec.value(), what));
  }

  std::shared_ptr<State> state_;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<SocketAddress> ParseAddress(const std::string& address, std::uint16_t port) {
  SocketAddress parsed;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&parsed.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&parsed.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    parsed.size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    parsed.size = sizeof *v6;
  } else {
    return Fail(Errc::kInvalidArgument,
                StrCat("\"", EscapeForTerminal(address), "\" is not an IP address"));
  }
  return parsed;
}

}  // namespace

std::unique_ptr<ByteStream> MakeSocketStream(Loop& loop, Fd socket) {
  return std::make_unique<SocketStream>(loop, std::move(socket));
}

Result<Fd> ListenTcp(const std::string& address, std::uint16_t port) {
  SOMA_ASSIGN(const SocketAddress parsed, ParseAddress(address, port));
  Fd socket(::socket(parsed.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(Error::FromErrno(errno, "socket"));
  const int one = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const auto* raw = reinterpret_cast<const sockaddr*>(&parsed.storage);
  // 4096: a hundred creates at once open a hundred connections (measured.md F); the kernel cuts it
  // to net.core.somaxconn.
  if (::bind(socket.get(), raw, parsed.size) != 0 || ::listen(socket.get(), 4096) != 0) {
    return std::unexpected(
        Error::FromErrno(errno, StrCat("listening on ", address, " port ", port)));
  }
  return socket;
}

Result<std::uint16_t> LocalPort(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return std::unexpected(Error::FromErrno(errno, "getsockname"));
  }
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return Fail(Errc::kInvalidArgument, "not a TCP socket");
}

}  // namespace soma::aio
