// SPDX-License-Identifier: Apache-2.0
#include "sys/packet_listener.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {
namespace {

constexpr int kBacklog = 128;

Result<Fd> NewSocket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "socket"));
  return fd;
}

Result<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(Errc::kOutOfRange, StrCat("the socket path is too long: ", path));
  }
  std::ranges::copy(path, address.sun_path);
  return address;
}

}  // namespace

Result<Fd> ListenPackets(const std::string& path) {
  // Bound under another name first: once `path` is there, connects queue.
  const std::string fresh = path + ".new";
  SOMA_ASSIGN(const sockaddr_un address, AddressOf(fresh));
  SOMA_ASSIGN(Fd fd, NewSocket());
  if (unlink(fresh.c_str()) < 0 && errno != ENOENT) {
    return std::unexpected(Error::FromErrno(errno, StrCat("unlink ", fresh)));
  }
  // The mode of the socket before bind is that of the file: there is no moment at which others
  // could connect.
  if (fchmod(fd.get(), 0600) < 0) return std::unexpected(Error::FromErrno(errno, "fchmod"));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("bind ", path)));
  }
  if (listen(fd.get(), kBacklog) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("listen ", path)));
  }
  if (rename(fresh.c_str(), path.c_str()) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("rename ", fresh)));
  }
  return fd;
}

Result<Fd> ConnectPackets(const std::string& path) {
  SOMA_ASSIGN(const sockaddr_un address, AddressOf(path));
  SOMA_ASSIGN(Fd fd, NewSocket());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("connect ", path)));
  }
  return fd;
}

Result<Fd> AcceptPackets(const Fd& listener) {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) return fd;
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
    return Fail(Errc::kUnavailable, "nobody connects");
  }
  return std::unexpected(Error::FromErrno(errno, "accept"));
}

Result<Peer> PeerOf(const Fd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) {
    return std::unexpected(Error::FromErrno(errno, "SO_PEERCRED"));
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

}  // namespace soma::sys
