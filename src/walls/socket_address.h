// SPDX-License-Identifier: Apache-2.0
// A sockaddr read from a task's memory, as text. Pure; every byte is foreign.
#ifndef SOMA_WALLS_SOCKET_ADDRESS_H_
#define SOMA_WALLS_SOCKET_ADDRESS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "walls/judge.h"

namespace soma::walls {

// sizeof(sockaddr_storage); the kernel takes no more (net/socket.c).
inline constexpr std::size_t kSocketAddressBytesMax = 128;

// INET, INET6 and UNIX in full, others by family only. A unix path comes as `path->asked`,
// unresolved; a v4 address mapped into v6 as the v4 one. Nothing when it is shorter than its family
// needs.
std::optional<RequestAddress> DecodeSocketAddress(ByteView raw);

// "192.0.2.1:80", "[2001:db8::1]:80", the unix path, "@abstract", "family 40".
std::string AddressText(const RequestAddress& address);

}  // namespace soma::walls

#endif  // SOMA_WALLS_SOCKET_ADDRESS_H_
