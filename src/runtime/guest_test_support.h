// SPDX-License-Identifier: Apache-2.0
// For tests: the agent's side of a wire, without an agent.
#ifndef SOMA_RUNTIME_GUEST_TEST_SUPPORT_H_
#define SOMA_RUNTIME_GUEST_TEST_SUPPORT_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "sys/fd.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {

using GuestAnswer = std::function<aio::Job(wire::Session&, const wire::SessionEvent&)>;

// Says who it is once connected and leaves everything else to `answer`, until the wire ends.
inline aio::Job ServeGuest(aio::Loop& loop, Fd wire, GuestAnswer answer) {
  const auto stream = aio::MakeSocketStream(loop, std::move(wire));
  wire::Session session(wire::Role::kGuest);
  std::vector<std::uint8_t> buffer(wire::kInputMax);
  for (;;) {
    const auto size = co_await stream->Read(buffer);
    if (!size || *size == 0) co_return;
    session.OnBytes(ByteView(buffer).first(*size));
    while (const auto event = session.Next()) {
      if (event->kind == wire::SessionEvent::Kind::kEstablished) {
        (void)session.Announce(wire::Identity{});
      } else {
        co_await answer(session, *event);
      }
    }
    for (ByteView out = session.Output(); !out.empty(); out = session.Output()) {
      const Bytes copy(out.begin(), out.end());
      session.Wrote(copy.size());
      if (!co_await stream->Write(copy)) co_return;
    }
  }
}

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_GUEST_TEST_SUPPORT_H_
