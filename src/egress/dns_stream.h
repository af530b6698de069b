// SPDX-License-Identifier: Apache-2.0
// DNS over TCP (RFC 7766): a sandbox's connection to port 53 of whatever address.
#ifndef SOMA_EGRESS_DNS_STREAM_H_
#define SOMA_EGRESS_DNS_STREAM_H_

#include <cstdint>

#include "aio/stream.h"
#include "aio/task.h"
#include "egress/broker.h"

namespace soma::egress {

inline constexpr std::uint16_t kDnsPort = 53;  // RFC 1035 4.2

// Answers one query after another until the other side ends, says nothing for ten seconds, sends
// what deserves no answer, or the stream is closed; then closes it. Both must stay until the end.
aio::Task<void> ServeDnsStream(Broker& broker, aio::ByteStream& stream);

}  // namespace soma::egress

#endif  // SOMA_EGRESS_DNS_STREAM_H_
