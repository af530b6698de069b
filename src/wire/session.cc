// SPDX-License-Identifier: Apache-2.0
#include "wire/session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/protocol.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {
namespace {

// An Ack is sent when this much was consumed since the last: often enough that a sender with a full
// window never waits for a slow round trip, seldom enough to cost nothing.
constexpr std::size_t kAckStep = kChannelWindow / 4;

bool IsOfGuest(ChannelId channel) { return (channel & kGuestChannelBit) != 0; }

}  // namespace

Session::Session(Role role)
    : link_(role),
      send_queue_max_(role == Role::kHost ? kSendQueueMax : kSendQueueMaxGuest),
      next_channel_(role == Role::kHost ? 0 : kGuestChannelBit) {}

void Session::Hello(const HelloOptions& options) {
  if (!options.resume) FailAllChannels();
  link_.Hello(options);
}

// ---- Receiving ----

std::optional<SessionEvent> Session::Next() {
  while (true) {
    if (fault_) return Break(*std::exchange(fault_, std::nullopt));
    if (!orphans_.empty()) {
      const ChannelId channel = orphans_.back();
      orphans_.pop_back();
      return SessionEvent{.kind = SessionEvent::Kind::kMessage,
                          .channel = channel,
                          .message = Failed{.code = Errc::kUnavailable,
                                            .message = "the connection into the sandbox is gone"},
                          .closes = true};
    }
    if (held_) return std::exchange(held_, std::nullopt);
    auto link_event = link_.Next();
    if (!link_event) return NextWritable();
    if (auto event = OnLinkEvent(*std::move(link_event))) return event;
  }
}

std::optional<SessionEvent> Session::OnLinkEvent(LinkEvent event) {
  using Kind = SessionEvent::Kind;
  switch (event.kind) {
    case LinkEvent::Kind::kMessage:
      return OnMessage(event.message);
    case LinkEvent::Kind::kEstablished:
      if (!event.resumed) FailAllChannels();
      held_ =
          SessionEvent{.kind = Kind::kEstablished, .resumed = event.resumed, .epoch = event.epoch};
      return std::nullopt;
    case LinkEvent::Kind::kBroken:
      return Break(std::move(event.reason));
    case LinkEvent::Kind::kQuiesced:
      return SessionEvent{.kind = Kind::kQuiesced};
    case LinkEvent::Kind::kResumed:
      return SessionEvent{.kind = Kind::kResumed};
  }
  return std::nullopt;
}

std::optional<SessionEvent> Session::OnMessage(const Bytes& bytes) {
  auto envelope = Decode(bytes);
  if (!envelope) return Break(envelope.error().message());
  if (envelope->channel == kControlChannel) {
    const bool known = std::holds_alternative<Identity>(envelope->message) ||
                       std::holds_alternative<Denied>(envelope->message);
    if (!known || role() == Role::kGuest) {
      return Break(StrCat(MessageName(envelope->message), " without a channel"));
    }
    return SessionEvent{.kind = SessionEvent::Kind::kMessage,
                        .message = std::move(envelope->message)};
  }
  const auto it = channels_.find(envelope->channel);
  if (it != channels_.end()) return OnChannelMessage(it, *std::move(envelope));
  const Role peer = role() == Role::kHost ? Role::kGuest : Role::kHost;
  if (IsRequestOf(peer, envelope->message)) return OnRequest(*std::move(envelope));
  // Late words about a channel that was closed from here. A request can't be that.
  if (IsRequestOf(role(), envelope->message)) return Break("a request in the wrong direction");
  return std::nullopt;
}

std::optional<SessionEvent> Session::OnRequest(Envelope envelope) {
  const ChannelId id = envelope.channel;
  if (IsOfGuest(id) != (role() == Role::kHost) || id <= last_there_) {
    return Break("a channel number that was not to be used");
  }
  if (channels_.size() - channels_ours_ >= kChannelsMax) return Break("too many open channels");
  last_there_ = id;
  channels_.emplace(id, Channel{.request = envelope.message.index()});
  return SessionEvent{.kind = SessionEvent::Kind::kMessage,
                      .channel = id,
                      .message = std::move(envelope.message),
                      .opens = true};
}

std::optional<SessionEvent> Session::OnChannelMessage(Channels::iterator it, Envelope envelope) {
  Channel& channel = it->second;
  const bool allowed = channel.ours ? MayReply(channel.request, envelope.message)
                                    : MayFollow(channel.request, envelope.message);
  if (!allowed) {
    return Break(StrCat("an unexpected ", MessageName(envelope.message), " on a channel"));
  }
  if (const auto* ack = std::get_if<Ack>(&envelope.message)) {
    AcceptAck(channel, *ack);
    return std::nullopt;
  }
  if (const auto* data = std::get_if<Data>(&envelope.message)) {
    if (!AcceptData(channel, *data)) return Break("data beyond the credit, or out of place");
  }
  if (std::holds_alternative<End>(envelope.message)) {
    if (channel.finished_there) return Break("a second End on a channel");
    channel.finished_there = true;
  }
  SessionEvent event{.kind = SessionEvent::Kind::kMessage,
                     .channel = it->first,
                     .message = std::move(envelope.message)};
  const bool both = IsDuplex(channel.request) && channel.finished_here && channel.finished_there;
  event.closes = both || IsTerminal(event.message);
  if (event.closes) Close(it);
  return event;
}

bool Session::AcceptData(Channel& channel, const Data& data) {
  if (data.bytes.empty() || data.offset != channel.received || channel.finished_there) return false;
  if (channel.received + data.bytes.size() > channel.acknowledged + kChannelWindow) return false;
  channel.received += data.bytes.size();
  return true;
}

void Session::AcceptAck(Channel& channel, const Ack& ack) {
  if (ack.consumed > channel.sent || ack.consumed < channel.peer_consumed) {
    fault_ = "an acknowledgement of data that was never sent";
    return;
  }
  channel.peer_consumed = ack.consumed;
}

// The host's owner is told; a guest has nobody to tell and waits for the next HELLO, which decides
// what becomes of the channels.
std::optional<SessionEvent> Session::Break(std::string reason) {
  link_.Abandon();
  if (role() == Role::kGuest) return std::nullopt;
  FailAllChannels();
  held_ = SessionEvent{.kind = SessionEvent::Kind::kBroken, .reason = std::move(reason)};
  return std::nullopt;
}

void Session::FailAllChannels() {
  for (const auto& [id, channel] : channels_) orphans_.push_back(id);
  channels_.clear();
  channels_ours_ = 0;
  wanting_.clear();
  next_channel_ = role() == Role::kHost ? 0 : kGuestChannelBit;
  last_there_ = 0;
}

void Session::Close(Channels::iterator it) {
  if (it->second.ours) --channels_ours_;
  std::erase(wanting_, it->first);
  channels_.erase(it);
}

// ---- Sending ----

ByteView Session::Output() { return link_.Output(); }

bool Session::SendNow(ChannelId channel, const Message& message) {
  auto bytes = Encode({.channel = channel, .message = message});
  if (!bytes) return false;
  if (link_.queued_bytes() + bytes->size() > kSendQueueHardMax) {
    fault_ = "the other side does not take its answers";
    return true;
  }
  link_.Send(*std::move(bytes));
  return true;
}

Result<ChannelId> Session::Request(const Message& request) {
  SOMA_CHECK(IsRequestOf(role(), request));
  if (!established()) return Fail(Errc::kUnavailable, "no connection into the sandbox");
  if (channels_ours_ >= kChannelsMax) {
    return Fail(Errc::kResourceExhausted, "too many operations on one sandbox at once");
  }
  if (link_.queued_bytes() > send_queue_max_) {
    return Fail(Errc::kResourceExhausted, "the sandbox does not take its requests");
  }
  const ChannelId id = next_channel_ + 1;
  // 2^31 requests in one epoch: the owner has to begin a new one.
  if (IsOfGuest(id) != (role() == Role::kGuest)) {
    return Fail(Errc::kResourceExhausted, "channel numbers are used up");
  }
  if (!SendNow(id, request)) {
    return Fail(Errc::kOutOfRange, StrCat("a field of ", MessageName(request), " is too long"));
  }
  next_channel_ = id;
  ++channels_ours_;
  channels_.emplace(id, Channel{.request = request.index(), .ours = true});
  return id;
}

Status Session::Reply(ChannelId id, const Message& reply) {
  const auto it = channels_.find(id);
  if (it == channels_.end()) return Fail(Errc::kNotFound, "the channel is closed");
  SOMA_CHECK(!it->second.ours && MayReply(it->second.request, reply) &&
             !std::holds_alternative<Data>(reply));
  if (!SendNow(id, reply)) {
    return Fail(Errc::kOutOfRange, StrCat("a field of ", MessageName(reply), " is too long"));
  }
  if (IsTerminal(reply)) Close(it);
  return {};
}

std::size_t Session::Room(const Channel& channel) const {
  if (channel.finished_here) return 0;
  const std::uint64_t credit = channel.peer_consumed + kChannelWindow - channel.sent;
  const std::size_t queued = std::min(link_.queued_bytes(), send_queue_max_);
  return std::min<std::uint64_t>(credit, send_queue_max_ - queued);
}

std::size_t Session::Writable(ChannelId id) const {
  const auto it = channels_.find(id);
  return it == channels_.end() ? 0 : Room(it->second);
}

std::size_t Session::Write(ChannelId id, DataKind kind, ByteView bytes) {
  const auto it = channels_.find(id);
  if (it == channels_.end()) return 0;
  Channel& channel = it->second;
  const std::size_t taken = std::min(bytes.size(), Room(channel));
  for (std::size_t offset = 0; offset < taken;) {
    const ByteView part = bytes.subspan(offset, std::min(taken - offset, kDataMax));
    SendNow(id, Data{.kind = kind, .offset = channel.sent, .bytes = {part.begin(), part.end()}});
    channel.sent += part.size();
    offset += part.size();
  }
  if (taken < bytes.size()) WantWritable(id);
  return taken;
}

void Session::WantWritable(ChannelId id) {
  const auto it = channels_.find(id);
  if (it == channels_.end() || it->second.wants_writable || it->second.finished_here) return;
  it->second.wants_writable = true;
  wanting_.push_back(id);
}

// The queue has to be half empty, so that a writer gets more than a few bytes for each event.
std::optional<SessionEvent> Session::NextWritable() {
  if (wanting_.empty() || link_.queued_bytes() > send_queue_max_ / 2) return std::nullopt;
  for (auto id = wanting_.begin(); id != wanting_.end(); ++id) {
    Channel& channel = channels_.at(*id);
    if (Room(channel) == 0) continue;
    channel.wants_writable = false;
    SessionEvent event{.kind = SessionEvent::Kind::kWritable, .channel = *id};
    wanting_.erase(id);
    return event;
  }
  return std::nullopt;
}

void Session::Consumed(ChannelId id, std::size_t bytes) {
  const auto it = channels_.find(id);
  if (it == channels_.end()) return;
  Channel& channel = it->second;
  SOMA_CHECK(channel.consumed + bytes <= channel.received);
  channel.consumed += bytes;
  if (channel.consumed - channel.acknowledged < kAckStep) return;
  channel.acknowledged = channel.consumed;
  SendNow(id, Ack{.consumed = channel.consumed});
}

void Session::Finish(ChannelId id) {
  const auto it = channels_.find(id);
  if (it == channels_.end() || it->second.finished_here) return;
  it->second.finished_here = true;
  SendNow(id, End{});
  if (IsDuplex(it->second.request) && it->second.finished_there) Close(it);
}

void Session::Abort(ChannelId id, Errc code, std::string message) {
  const auto it = channels_.find(id);
  if (it == channels_.end()) return;
  message.resize(std::min(message.size(), kTextMax));
  SendNow(id, Reset{.code = code, .message = std::move(message)});
  Close(it);
}

Status Session::Announce(const Message& message) {
  SOMA_CHECK(role() == Role::kGuest);
  if (!SendNow(kControlChannel, message)) {
    return Fail(Errc::kOutOfRange, StrCat("a field of ", MessageName(message), " is too long"));
  }
  return {};
}

}  // namespace soma::wire
