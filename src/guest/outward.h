// SPDX-License-Identifier: Apache-2.0
// The operations behind the egress gate: one caught connection, one caught DNS query.
#ifndef SOMA_GUEST_OUTWARD_H_
#define SOMA_GUEST_OUTWARD_H_

#include <netinet/in.h>

#include <memory>
#include <utility>

#include "guest/loop.h"
#include "guest/operation.h"
#include "guest/splice.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

// Waits for Opened, then carries bytes. A refusal resets the connection.
class OutwardConnection final : public Splice {
 public:
  OutwardConnection(Loop& loop, wire::Session& session, wire::ChannelId channel, Fd socket)
      : Splice(loop, session, channel), waiting_(std::move(socket)) {}
  ~OutwardConnection() override;
  void OnReply(wire::Message& message) override;

 private:
  Fd waiting_;
};

// Where a query came from, and what address it was meant for: the answer comes from there.
struct QueryOrigin {
  sockaddr_in client{};
  in_addr asked{};
};

// Sends the answer back by the shared socket. No answer: the client asks again, or gives up.
class OutwardQuery final : public Operation {
 public:
  // `socket` outlives the operation.
  OutwardQuery(wire::Session& session, wire::ChannelId channel, const Fd& socket,
               const QueryOrigin& origin)
      : Operation(session, channel), socket_(socket), origin_(origin) {}
  void OnReply(wire::Message& message) override;

 private:
  const Fd& socket_;
  QueryOrigin origin_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_OUTWARD_H_
