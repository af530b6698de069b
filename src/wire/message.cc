// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "wire/codec.h"
#include "wire/fields.h"
#include "wire/link.h"

namespace soma::wire {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
    "Init",       "Start",   "Attach",   "ListTasks", "Signal", "Resize",   "Stdin",
    "CloseStdin", "Stat",    "ListDir",  "MakeDir",   "Move",   "Remove",   "ReadFile",
    "WriteFile",  "Watch",   "GetStats", "Dial",      "Open",   "Datagram", "Ok",
    "Failed",     "Started", "Exit",     "Entry",     "Opened", "Stats",    "DatagramReply",
    "Data",       "Ack",     "Cut",      "End",       "Reset",  "Identity", "Denied"};
static_assert(!kNames.back().empty());

}  // namespace

std::string_view MessageName(const Message& message) { return kNames.at(message.index()); }

Result<Bytes> Encode(const Envelope& envelope) {
  Bytes out;
  ByteWriter header(out);
  header.Put(static_cast<std::uint8_t>(envelope.message.index()));
  header.Put(envelope.channel);
  FieldWriter writer(out);
  // The writer does not change anything; Fields is written once for both directions.
  std::visit([&](auto& message) { Fields(writer, message); },
             const_cast<Message&>(envelope.message));
  if (!writer.ok() || out.size() > kMessageSizeMax) {
    return Fail(Errc::kOutOfRange,
                StrCat("a field of ", MessageName(envelope.message), " is beyond its limit"));
  }
  return out;
}

Result<Envelope> Decode(ByteView bytes) {
  constexpr std::size_t kPrefixSize = 5;
  if (bytes.size() < kPrefixSize || bytes.size() > kMessageSizeMax) {
    return Fail(Errc::kInvalidArgument, "a message of an impossible size");
  }
  ByteReader prefix(bytes.first(kPrefixSize));
  Envelope envelope;
  const auto type = prefix.Get<std::uint8_t>();
  envelope.channel = prefix.Get<std::uint32_t>();
  if (!EmplaceAlternative(envelope.message, type)) {
    return Fail(Errc::kInvalidArgument, StrCat("unknown message type ", unsigned{type}));
  }
  FieldReader reader(bytes.subspan(kPrefixSize));
  std::visit([&](auto& message) { Fields(reader, message); }, envelope.message);
  if (!reader.AtEnd()) {
    return Fail(Errc::kInvalidArgument, StrCat("malformed ", MessageName(envelope.message)));
  }
  return envelope;
}

}  // namespace soma::wire
