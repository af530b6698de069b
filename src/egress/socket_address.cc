// SPDX-License-Identifier: Apache-2.0
#include "egress/socket_address.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "policy/address.h"
#include "sys/fd.h"

namespace soma::egress {

std::optional<Endpoint> EndpointFrom(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return Endpoint{policy::IpAddress::V4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port)};
  }
  if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    Endpoint endpoint{{}, ntohs(v6.sin6_port)};
    std::memcpy(endpoint.address.bytes.data(), &v6.sin6_addr, endpoint.address.bytes.size());
    return endpoint;
  }
  return std::nullopt;
}

SocketAddress SocketAddressFor(const Endpoint& endpoint) {
  SocketAddress out;
  if (endpoint.address.IsV4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    v4.sin_addr.s_addr = htonl(endpoint.address.AsV4());
    std::memcpy(&out.storage, &v4, sizeof v4);
    out.size = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    std::memcpy(&v6.sin6_addr, endpoint.address.bytes.data(), endpoint.address.bytes.size());
    std::memcpy(&out.storage, &v6, sizeof v6);
    out.size = sizeof v6;
  }
  return out;
}

Result<Endpoint> LocalEndpoint(const Fd& socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return std::unexpected(Error::FromErrno(errno, "getsockname"));
  }
  const auto endpoint = EndpointFrom(reinterpret_cast<const sockaddr&>(storage));
  if (!endpoint) return Fail(Errc::kInternal, "a socket that is neither IPv4 nor IPv6");
  return *endpoint;
}

Result<std::vector<policy::IpAddress>> HostAddresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return std::unexpected(Error::FromErrno(errno, "getifaddrs"));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, &::freeifaddrs);
  std::vector<policy::IpAddress> addresses;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    if (const auto endpoint = EndpointFrom(*at->ifa_addr)) addresses.push_back(endpoint->address);
  }
  return addresses;
}

}  // namespace soma::egress
