// SPDX-License-Identifier: Apache-2.0
// Between the kernel's socket addresses and our values, and what this machine's own addresses are.
#ifndef SOMA_EGRESS_SOCKET_ADDRESS_H_
#define SOMA_EGRESS_SOCKET_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/address.h"
#include "sys/fd.h"

namespace soma::egress {

struct Endpoint {
  policy::IpAddress address;
  std::uint16_t port = 0;
};

// nullopt for a family that is neither IPv4 nor IPv6. The caller guarantees that the storage behind
// it has the family's size.
std::optional<Endpoint> EndpointFrom(const sockaddr& address);

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};
// IPv4 addresses give an IPv4 socket address.
SocketAddress SocketAddressFor(const Endpoint& endpoint);

// getsockname(2): for a connection that the capture redirected, where it was meant to go.
Result<Endpoint> LocalEndpoint(const Fd& socket);

// The addresses of all interfaces of this network namespace.
Result<std::vector<policy::IpAddress>> HostAddresses();

}  // namespace soma::egress

#endif  // SOMA_EGRESS_SOCKET_ADDRESS_H_
