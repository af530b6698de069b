// SPDX-License-Identifier: Apache-2.0
#include "sys/inet_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {
namespace {

constexpr int kBacklog = 512;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<Address> ParseAddress(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : ParseInt<std::uint16_t>(std::string_view(text).substr(colon + 1));
  Address address;
  if (port) {
    std::string host = text.substr(0, colon);
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed &&
        inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(*port);
      address.size = sizeof *v6;
      return address;
    }
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
      v4->sin_family = AF_INET;
      v4->sin_port = htons(*port);
      address.size = sizeof *v4;
      return address;
    }
  }
  return Fail(Errc::kInvalidArgument, StrCat("not an address and port: ", EscapeForTerminal(text)));
}

}  // namespace

Result<Fd> ListenTcp(const std::string& address) {
  SOMA_ASSIGN(const Address parsed, ParseAddress(address));
  Fd fd(socket(parsed.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(Error::FromErrno(errno, "socket"));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&parsed.storage), parsed.size) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("bind ", address)));
  }
  if (listen(fd.get(), kBacklog) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("listen ", address)));
  }
  return fd;
}

}  // namespace soma::sys
