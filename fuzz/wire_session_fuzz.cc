// SPDX-License-Identifier: Apache-2.0
// A host's Session with some operations open, against a guest that frames correctly and says
// anything: the input is a row of {u16 length, message}. The session may break; it may not hold
// more than its limits, nor report what the grammar forbids.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace {

using namespace soma;
using namespace soma::wire;

void Drain(Session& host) {
  while (auto event = host.Next()) {
    if (event->kind != SessionEvent::Kind::kMessage) continue;
    if (const auto* data = std::get_if<Data>(&event->message)) {
      host.Consumed(event->channel, data->bytes.size() / 2);
    }
    if (event->opens && event->channel % 2 == 0) {
      SOMA_CHECK(host.Reply(event->channel, Failed{}).has_value());
    }
  }
  SOMA_CHECK(host.channel_count() <= 2 * kChannelsMax);
  SOMA_CHECK(host.queued_bytes() <= kSendQueueHardMax);
}

void Exchange(Session& host, Link& guest) {
  for (ByteView out = host.Output(); !out.empty(); out = host.Output()) {
    guest.OnBytes(out);
    host.Wrote(out.size());
    while (guest.Next()) {
    }
  }
  for (ByteView out = guest.Output(); !out.empty(); out = guest.Output()) {
    host.OnBytes(out);
    guest.Wrote(out.size());
    Drain(host);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Session host(Role::kHost);
  Link guest(Role::kGuest);
  host.Hello({.epoch = 1});
  for (int i = 0; i < 3; ++i) Exchange(host, guest);
  // Channels 1 to 5.
  for (const Message& request : {Message(Start{}), Message(WriteFile{}), Message(Dial{}),
                                 Message(ListDir{}), Message(Stat{})}) {
    SOMA_CHECK(host.Request(request).has_value());
  }
  ByteReader reader({data, size});
  while (reader.remaining() > 2) {
    const std::size_t length =
        std::clamp<std::size_t>(reader.Get<std::uint16_t>(), 1, reader.remaining());
    const ByteView message = reader.GetRaw(length);
    guest.Send({message.begin(), message.end()});
    Exchange(host, guest);
  }
  return 0;
}
