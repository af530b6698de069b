// SPDX-License-Identifier: Apache-2.0
// The grammar of channels: who may open one with what, what may follow, what ends it. A session
// checks every message against it, so an owner sees only what the table in wire/message.h allows.
// Pure.
#ifndef SOMA_WIRE_PROTOCOL_H_
#define SOMA_WIRE_PROTOCOL_H_

#include <cstddef>

#include "wire/link.h"
#include "wire/message.h"

namespace soma::wire {

// Which request opened a channel: the index of its type in Message.
using RequestKind = std::size_t;

bool IsRequestOf(Role role, const Message& message);
// What the side that was asked may send on the channel.
bool MayReply(RequestKind request, const Message& message);
// What the side that asked may send on the channel after its request.
bool MayFollow(RequestKind request, const Message& message);
// Bytes flow both ways; the channel ends when both sides have said End.
bool IsDuplex(RequestKind request);
// Ends the channel at once.
bool IsTerminal(const Message& message);

}  // namespace soma::wire

#endif  // SOMA_WIRE_PROTOCOL_H_
