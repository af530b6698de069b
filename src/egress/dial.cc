// SPDX-License-Identifier: Apache-2.0
#include "egress/dial.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <expected>
#include <string>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "egress/socket_address.h"
#include "policy/address.h"
#include "sys/fd.h"

namespace soma::egress {

namespace {

int PendingError(const Fd& socket) {
  int code = 0;
  socklen_t size = sizeof code;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) return errno;
  return code;
}

}  // namespace

aio::Task<Fd> Dial(aio::Loop& loop, Endpoint to, std::chrono::nanoseconds timeout) {
  const std::string what =
      StrCat("connecting to ", policy::FormatAddress(to.address), " port ", to.port);
  const SocketAddress address = SocketAddressFor(to);
  Fd socket(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) co_return std::unexpected(Error::FromErrno(errno, what));
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (::connect(socket.get(), address.get(), address.size) == 0) co_return socket;
  if (errno != EINPROGRESS) co_return std::unexpected(Error::FromErrno(errno, what));
  SOMA_CO_ASSIGN(const bool ready, co_await aio::WaitWritable(loop, socket.get(), timeout));
  if (!ready) co_return Fail(Errc::kDeadlineExceeded, StrCat(what, ": no answer"));
  if (const int code = PendingError(socket); code != 0) {
    co_return std::unexpected(Error::FromErrno(code, what));
  }
  co_return socket;
}

}  // namespace soma::egress
