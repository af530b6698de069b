// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "control/messages.h"

namespace soma::control {

Result<Client::Asked> Client::Ask(Request request) {
  if (under_way_.size() >= kUnderWayMax) {
    return Fail(Errc::kResourceExhausted, "too many requests to the launcher are under way");
  }
  while (next_sequence_ == 0 || under_way_.contains(next_sequence_)) ++next_sequence_;
  request.sequence = next_sequence_;
  SOMA_ASSIGN(const Packet packet, Encode(request));
  under_way_.emplace(next_sequence_, request.verb);
  return Asked{.packet = packet, .sequence = next_sequence_++};
}

Result<Reply> Client::Receive(ByteView packet, std::size_t descriptor_count) {
  auto reply = DecodeReply(packet);
  if (!reply) return Fail(Errc::kDataLoss, std::move(reply).error().message());
  if (reply->descriptor_count != descriptor_count) {
    return Fail(Errc::kDataLoss, "a reply came with another number of descriptors than it says");
  }
  if (reply->verb == Verb::kEvent) {
    if (reply->sequence != 0) return Fail(Errc::kDataLoss, "an event answers a request");
    return *std::move(reply);
  }
  const auto asked = under_way_.find(reply->sequence);
  if (asked == under_way_.end() || asked->second != reply->verb) {
    return Fail(Errc::kDataLoss, "a reply came that nobody asked for");
  }
  under_way_.erase(asked);
  return *std::move(reply);
}

}  // namespace soma::control
