// SPDX-License-Identifier: Apache-2.0
#include "guest/splice.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/loop.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

void ResetOnClose(const Fd& socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

Splice::~Splice() {
  if (!channel_finished_ || !socket_finished_) Stop();
}

Status Splice::Begin(Fd socket) {
  socket_ = std::move(socket);
  SOMA_ASSIGN(registration_,
              loop_.Add(socket_, 0, [this](std::uint32_t events) { OnReady(events); }));
  WriteSocket();  // what came before the connection stood
  return {};
}

void Splice::OnMessage(wire::Message& message) {
  if (auto* data = std::get_if<wire::Data>(&message)) {
    pending_.insert(pending_.end(), data->bytes.begin(), data->bytes.end());
  } else {
    channel_finished_ = true;
  }
  // Before the connection stands the bytes just wait.
  if (socket_) WriteSocket();
}

void Splice::OnReady(std::uint32_t events) {
  if ((events & EPOLLERR) != 0) return Break();
  if ((events & EPOLLOUT) != 0) WriteSocket();
  if (socket_ && (events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP)) != 0) ReadSocket();
}

void Splice::ReadSocket() {
  std::array<std::uint8_t, wire::kDataMax> buffer;
  const std::size_t room = std::min(session().Writable(channel()), buffer.size());
  if (room == 0) return Update();
  const ssize_t got = ::recv(socket_.get(), buffer.data(), room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Update();
  if (got < 0) return Break();
  if (got == 0) {
    socket_finished_ = true;
    session().Finish(channel());
  } else {
    session().Write(channel(), wire::DataKind::kBytes,
                    ByteView(buffer).first(static_cast<std::size_t>(got)));
  }
  Update();
}

void Splice::WriteSocket() {
  while (written_ < pending_.size()) {
    const ByteView left = ByteView(pending_).subspan(written_);
    const ssize_t put =
        ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) return Break();
    written_ += static_cast<std::size_t>(put);
    session().Consumed(channel(), static_cast<std::size_t>(put));
  }
  if (written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
    if (channel_finished_ && !shut_down_) {
      shut_down_ = true;
      static_cast<void>(::shutdown(socket_.get(), SHUT_WR));
    }
  }
  Update();
}

// Waits for exactly what can be done: read while there is credit, write while something waits.
void Splice::Update() {
  if (!socket_) return;
  std::uint32_t events = 0;
  if (!socket_finished_) {
    if (session().Writable(channel()) > 0) {
      events |= EPOLLIN;
    } else {
      session().WantWritable(channel());
    }
  }
  if (!pending_.empty()) events |= EPOLLOUT;
  registration_.Want(events);
}

void Splice::Stop() {
  if (!socket_) return;
  registration_.Reset();
  ResetOnClose(socket_);
  socket_.Reset();
}

void Splice::Break() {
  Stop();
  session().Abort(channel(), Errc::kUnavailable, "connection reset");
}

// ---- Dialling ----

void Dialer::Start(std::uint16_t port) {
  port_ = port;
  Try(false);
}

void Dialer::Try(bool ipv6) {
  Fd socket(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return Refuse(errno, ipv6);
  sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port_)};
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{.sin6_family = AF_INET6, .sin6_port = htons(port_)};
  v6.sin6_addr = in6addr_loopback;
  const auto* address =
      ipv6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const int answer = ::connect(socket.get(), address, ipv6 ? sizeof v6 : sizeof v4);
  if (answer != 0 && errno != EINPROGRESS) return Refuse(errno, ipv6);
  connecting_ = std::move(socket);
  auto registration =
      loop().Add(connecting_, EPOLLOUT, [this, ipv6](std::uint32_t) { OnConnected(ipv6); });
  if (!registration) return Fail(registration.error());
  connected_ = *std::move(registration);
}

void Dialer::OnConnected(bool ipv6) {
  int error = 0;
  socklen_t size = sizeof error;
  static_cast<void>(::getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &error, &size));
  connected_.Reset();
  Fd socket = std::move(connecting_);
  if (error != 0) return Refuse(error, ipv6);
  Reply(wire::Opened{});
  if (const auto begun = Begin(std::move(socket)); !begun) Fail(begun.error());
}

void Dialer::Refuse(int error, bool ipv6) {
  if (!ipv6) return Try(true);
  Reply(wire::Failed{.code = Errc::kUnavailable,
                     .errno_value = error,
                     .message = StrCat("port ", port_, ": ", ErrnoName(error))});
}

}  // namespace soma::guest
