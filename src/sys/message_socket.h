// SPDX-License-Identifier: Apache-2.0
// Local sockets between our own processes: pairs, and packets that carry descriptors (SCM_RIGHTS).
//
// Packets are SOCK_SEQPACKET: each arrives whole or not at all, and the end of the peer is seen as
// an empty packet. The receiver bounds both the bytes and the number of descriptors; more than it
// allows is an error, and what came is closed. Source: unix(7).
#ifndef SOMA_SYS_MESSAGE_SOCKET_H_
#define SOMA_SYS_MESSAGE_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

struct SocketPair {
  Fd first;
  Fd second;
};
// AF_UNIX, close-on-exec. `type` is SOCK_STREAM or SOCK_SEQPACKET, or'd with SOCK_NONBLOCK if
// wanted.
Result<SocketPair> MakeSocketPair(int type);

// The most descriptors that one packet may carry here (the kernel's SCM_MAX_FD is 253).
inline constexpr std::size_t kPacketDescriptorsMax = 16;

// Between fork and exec; 0 or an errno. Never raises SIGPIPE. The descriptors stay the caller's.
int SendPacketRaw(int socket, std::span<const std::uint8_t> bytes,
                  std::span<const int> descriptors) noexcept;

// As above with an Error. EAGAIN (kResourceExhausted) when the socket is non-blocking and full.
Status SendPacket(const Fd& socket, std::span<const std::uint8_t> bytes,
                  std::span<const int> descriptors = {});

struct ReceivedPacket {
  std::size_t size = 0;         // 0: the peer is gone
  std::vector<Fd> descriptors;  // close-on-exec
};
// Into `buffer`; a packet that doesn't fit, or carries more than `descriptors_max`, is kOutOfRange.
// EAGAIN is kResourceExhausted with that errno_value().
Result<ReceivedPacket> ReceivePacket(const Fd& socket, std::span<std::uint8_t> buffer,
                                     std::size_t descriptors_max);

}  // namespace soma::sys

#endif  // SOMA_SYS_MESSAGE_SOCKET_H_
