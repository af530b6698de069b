// SPDX-License-Identifier: Apache-2.0
// Datagrams on a socket that is bound to every address: the answer must come from the address that
// the query was sent to (IP_PKTINFO, ip(7)), or the asking program drops it.
#ifndef SOMA_EGRESS_DNS_SOCKET_H_
#define SOMA_EGRESS_DNS_SOCKET_H_

#include <netinet/in.h>

#include <optional>

#include "base/bytes.h"
#include "sys/fd.h"

namespace soma::egress {

struct ReceivedQuery {
  Bytes message;
  sockaddr_in from{};
  in_addr to{};
};

// Does not block; nullopt when nothing is there.
std::optional<ReceivedQuery> ReceiveQuery(const Fd& socket);
// Lost when it can't be sent at once: whoever asked asks again.
void SendAnswer(const Fd& socket, const ReceivedQuery& query, ByteView answer);

}  // namespace soma::egress

#endif  // SOMA_EGRESS_DNS_SOCKET_H_
