// SPDX-License-Identifier: Apache-2.0
#include "walls/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/text.h"
#include "walls/judge.h"

namespace soma::walls {
namespace {

std::string HostText(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(family, address, text, sizeof text);
  return text;
}

std::optional<RequestAddress> DecodeV4(ByteView raw) {
  sockaddr_in address{};
  // The kernel reads only up to sin_addr (net/ipv4: addr_len >= sizeof(struct sockaddr_in)).
  if (raw.size() < sizeof address) return std::nullopt;
  std::memcpy(&address, raw.data(), sizeof address);
  return RequestAddress{.family = AF_INET,
                        .host = HostText(AF_INET, &address.sin_addr),
                        .port = ntohs(address.sin_port)};
}

std::optional<RequestAddress> DecodeV6(ByteView raw) {
  // SIN6_LEN_RFC2133 (linux/ipv6.h): the scope id may be missing.
  constexpr std::size_t kBytesMin = 24;
  constexpr std::size_t kMappedPrefixBytes = 12;
  sockaddr_in6 address{};
  if (raw.size() < kBytesMin) return std::nullopt;
  std::memcpy(&address, raw.data(), kBytesMin);
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&address.sin6_addr);
  return RequestAddress{
      .family = AF_INET6,
      .host = mapped ? HostText(AF_INET, address.sin6_addr.s6_addr + kMappedPrefixBytes)
                     : HostText(AF_INET6, &address.sin6_addr),
      .port = ntohs(address.sin6_port)};
}

std::optional<RequestAddress> DecodeUnix(ByteView raw) {
  const std::string_view rest = AsText(raw.subspan(offsetof(sockaddr_un, sun_path)));
  RequestAddress address{.family = AF_UNIX};
  if (rest.empty()) return address;  // bind: the kernel chooses an abstract name
  if (rest.front() == '\0') {
    address.host = StrCat('@', rest.substr(1));
  } else {
    address.path = RequestPath{.asked = std::string(rest.substr(0, rest.find('\0')))};
  }
  return address;
}

}  // namespace

std::optional<RequestAddress> DecodeSocketAddress(ByteView raw) {
  sa_family_t family = 0;
  if (raw.size() < sizeof family || raw.size() > kSocketAddressBytesMax) return std::nullopt;
  std::memcpy(&family, raw.data(), sizeof family);
  switch (family) {
    case AF_INET:
      return DecodeV4(raw);
    case AF_INET6:
      return DecodeV6(raw);
    case AF_UNIX:
      return DecodeUnix(raw);
    default:
      return RequestAddress{.family = family};
  }
}

std::string AddressText(const RequestAddress& address) {
  if (address.path) {
    return address.path->absolute.empty() ? address.path->asked : address.path->absolute;
  }
  switch (address.family) {
    case AF_INET:
    case AF_INET6:
      return address.host.contains(':') ? StrCat('[', address.host, "]:", address.port)
                                        : StrCat(address.host, ':', address.port);
    case AF_UNIX:
      return address.host.empty() ? "unnamed unix socket" : address.host;
    default:
      return StrCat("address family ", address.family);
  }
}

}  // namespace soma::walls
