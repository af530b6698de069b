// SPDX-License-Identifier: Apache-2.0
// Named SOCK_SEQPACKET sockets: listening, connecting, and the kernel's word on who the peer is.
// Non-blocking and close-on-exec from birth. Packets themselves: sys/message_socket.h. Source:
// unix(7).
#ifndef SOMA_SYS_PACKET_LISTENER_H_
#define SOMA_SYS_PACKET_LISTENER_H_

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// Binds `path` anew (an old socket file there is removed) and listens. The file has mode 0600 from
// birth and belongs to the caller.
Result<Fd> ListenPackets(const std::string& path);
Result<Fd> ConnectPackets(const std::string& path);
// kUnavailable when nobody waits.
Result<Fd> AcceptPackets(const Fd& listener);

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// As it was at connect; for a pair: who made it.
Result<Peer> PeerOf(const Fd& socket);

}  // namespace soma::sys

#endif  // SOMA_SYS_PACKET_LISTENER_H_
