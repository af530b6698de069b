// SPDX-License-Identifier: Apache-2.0
#include "wire/link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/frame.h"

namespace soma::wire {
namespace {

// Where the magic of a frame begins at or after `from`; the size of `bytes` if nowhere. The last
// three bytes can't be judged yet.
std::size_t FindMagic(ByteView bytes, std::size_t from) {
  const std::uint8_t magic[4] = {'S', 'O', 'M', 'W'};
  if (from >= bytes.size()) return bytes.size();
  const void* found = ::memmem(bytes.data() + from, bytes.size() - from, magic, sizeof magic);
  if (found == nullptr) return bytes.size();
  return static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - bytes.data());
}

// Takes the same time wherever the difference is.
bool SameSecret(const LinkSecret& a, const LinkSecret& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= unsigned{a[i]} ^ unsigned { b[i] };
  return difference == 0;
}

}  // namespace

// ---- Receiving ----

void Link::OnBytes(ByteView bytes) {
  SOMA_CHECK(bytes.size() <= kInputMax);
  if (input_offset_ > 0) {
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(input_offset_));
    input_offset_ = 0;
  }
  input_.insert(input_.end(), bytes.begin(), bytes.end());
}

std::optional<LinkEvent> Link::Next() {
  MaybeEvent event;
  while (!event && Step(event)) {
  }
  return event;
}

bool Link::Step(MaybeEvent& event) {
  if (Pending().empty()) return false;
  if (state_ == State::kEstablished) return StepFrame(event);
  if (role_ == Role::kHost && state_ != State::kHelloSent) {
    Consume(Pending().size());
    return false;
  }
  if (FindHello(0, event)) return true;
  // Nothing else can matter before the epoch stands.
  Consume(std::min(scanned_, Pending().size()));
  return false;
}

bool Link::StepFrame(MaybeEvent& event) {
  const ByteView pending = Pending();
  if (pending.size() < kFrameHeaderSize) return false;
  const auto header = DecodeFrameHeader(pending);
  if (!header) {
    Break("a frame header is damaged", event);
    return true;
  }
  if (pending.size() < kFrameHeaderSize + header->length) {
    // The sender may have died inside this frame, and its successor's HELLO may be what follows.
    return role_ == Role::kGuest && FindHello(1, event);
  }
  const ByteView payload = pending.subspan(kFrameHeaderSize, header->length);
  if (header->payload_sum != static_cast<std::uint32_t>(Checksum(payload))) {
    Break("a frame's payload is damaged", event);
    return true;
  }
  if (const auto hello = DecodeHello(pending)) {
    if (IsTrusted(*hello)) TakeHello(*hello, event);
  } else if (header->epoch == epoch_) {
    TakeFrame(*header, payload, event);
    if (state_ != State::kEstablished) return true;  // broken: it may hide a HELLO
  }
  Consume(kFrameHeaderSize + header->length);
  return true;
}

bool Link::FindHello(std::size_t from, MaybeEvent& event) {
  const ByteView pending = Pending();
  std::size_t at = FindMagic(pending, std::max(from, scanned_));
  while (at + kHelloFrameSize <= pending.size()) {
    const auto hello = DecodeHello(pending.subspan(at));
    if (hello && IsTrusted(*hello)) {
      TakeHello(*hello, event);
      Consume(at + kHelloFrameSize);
      return true;
    }
    at = FindMagic(pending, at + 1);
  }
  constexpr std::size_t kMagicTail = 3;
  scanned_ = at < pending.size() ? at : pending.size() - std::min(pending.size(), kMagicTail);
  return false;
}

bool Link::IsTrusted(const HelloFrame& hello) const {
  const FrameType type = hello.header.type;
  if (role_ == Role::kGuest) {
    if (type != FrameType::kHello) return false;
    return !has_secret_ || SameSecret(hello.payload.secret, secret_);
  }
  if (state_ != State::kHelloSent || hello.header.epoch != epoch_) return false;
  if (type == FrameType::kHelloAck) return SameSecret(hello.payload.secret, hello_.next_secret);
  return type == FrameType::kHelloStale && SameSecret(hello.payload.secret, hello_.secret);
}

void Link::TakeHello(const HelloFrame& hello, MaybeEvent& event) {
  if (role_ == Role::kGuest) {
    TakeHelloAsGuest(hello, event);
  } else {
    TakeHelloReplyAsHost(hello, event);
  }
}

void Link::TakeHelloAsGuest(const HelloFrame& hello, MaybeEvent& event) {
  if (hello.header.epoch <= epoch_) {
    control_.push_back(EncodeHello(FrameType::kHelloStale, 0, hello.header.epoch,
                                   {.value = epoch_, .secret = hello.payload.secret}));
    return;
  }
  epoch_ = hello.header.epoch;
  has_secret_ = true;
  secret_ = hello.payload.next_secret;
  DropOutput();
  const bool resumed = (hello.header.flags & kFlagFresh) == 0 && CanRewind(hello.payload.value);
  if (resumed) {
    Rewind(hello.payload.value);
  } else {
    ForgetStreams();
  }
  control_.push_back(EncodeHello(FrameType::kHelloAck, resumed ? 0 : kFlagFresh, epoch_,
                                 {.value = next_received_, .secret = secret_}));
  Establish(resumed, event);
}

void Link::TakeHelloReplyAsHost(const HelloFrame& hello, MaybeEvent& event) {
  if (hello.header.type == FrameType::kHelloStale) {
    // An epoch at the end of the number range would leave no way forward.
    if (hello.payload.value > UINT64_MAX / 2) return Break("an impossible epoch", event);
    epoch_ = std::max(epoch_, hello.payload.value) + 1;
    return SayHello();
  }
  const bool resumed = (hello.header.flags & kFlagFresh) == 0;
  if (resumed && (!hello_.resume || !CanRewind(hello.payload.value))) {
    return Break("the guest continues streams that do not exist", event);
  }
  if (resumed) {
    Rewind(hello.payload.value);
  } else if (hello_.resume) {
    ForgetStreams();
  }
  Establish(resumed, event);
}

void Link::Establish(bool resumed, MaybeEvent& event) {
  state_ = State::kEstablished;
  quiet_ = false;
  quiesced_due_ = false;
  event = LinkEvent{.kind = LinkEvent::Kind::kEstablished, .resumed = resumed, .epoch = epoch_};
}

void Link::TakeFrame(const FrameHeader& header, ByteView payload, MaybeEvent& event) {
  if (!Acknowledge(header.acknowledged)) {
    return Break("an acknowledgement of what was never sent", event);
  }
  switch (header.type) {
    case FrameType::kData:
      return TakeData(header, payload, event);
    case FrameType::kQuiesce:
    case FrameType::kQuiesced:
    case FrameType::kResume:
      return TakeQuiet(header.type, event);
    case FrameType::kAck:
      return;
    case FrameType::kHello:
    case FrameType::kHelloAck:
    case FrameType::kHelloStale:
      return Break("a hello of the wrong size", event);
  }
}

void Link::TakeData(const FrameHeader& header, ByteView payload, MaybeEvent& event) {
  if (header.sequence != next_received_) return Break("a frame is missing", event);
  if (payload.empty()) return Break("a frame without data", event);
  if (partial_.size() + payload.size() > kMessageSizeMax) {
    return Break("a message is too long", event);
  }
  ++next_received_;
  acknowledge_due_ = true;
  partial_.insert(partial_.end(), payload.begin(), payload.end());
  if ((header.flags & kFlagMore) != 0) return;
  event = LinkEvent{.kind = LinkEvent::Kind::kMessage, .message = std::exchange(partial_, {})};
}

void Link::TakeQuiet(FrameType type, MaybeEvent& event) {
  const bool from_host = type != FrameType::kQuiesced;
  if (from_host != (role_ == Role::kGuest)) return Break("a frame in the wrong direction", event);
  if (type == FrameType::kResume) {
    quiet_ = false;
    quiesced_due_ = false;
    event = LinkEvent{.kind = LinkEvent::Kind::kResumed};
    return;
  }
  if (type == FrameType::kQuiesce) {
    quiet_ = true;
    quiesced_due_ = true;
  } else if (!quiet_ || WrittenFrames() > 0) {
    return Break("quiesced without being asked, or too early", event);
  }
  event = LinkEvent{.kind = LinkEvent::Kind::kQuiesced};
}

// A host tells its owner and stops. A guest just waits for the next HELLO, which may be in its
// input already: a cut channel looks the same as a broken one.
void Link::Break(std::string reason, MaybeEvent& event) {
  state_ = State::kBroken;
  scanned_ = 0;
  DropOutput();
  if (role_ == Role::kGuest) return;
  event = LinkEvent{.kind = LinkEvent::Kind::kBroken, .reason = std::move(reason)};
}

void Link::Abandon() {
  MaybeEvent ignored;
  Break({}, ignored);
  if (role_ == Role::kHost) ForgetStreams();
}

void Link::Consume(std::size_t bytes) {
  input_offset_ += bytes;
  scanned_ = 0;
  if (input_offset_ == input_.size()) {
    input_.clear();
    input_offset_ = 0;
  }
}

// ---- Sending ----

void Link::Hello(const HelloOptions& options) {
  SOMA_CHECK(role_ == Role::kHost);
  hello_ = options;
  epoch_ = std::max(options.epoch, epoch_ + 1);
  Consume(Pending().size());
  if (!options.resume) ForgetStreams();
  SayHello();
}

void Link::SayHello() {
  DropOutput();
  quiet_ = false;
  state_ = State::kHelloSent;
  control_.push_back(EncodeHello(
      FrameType::kHello, hello_.resume ? 0 : kFlagFresh, epoch_,
      {.value = next_received_, .secret = hello_.secret, .next_secret = hello_.next_secret}));
}

void Link::Send(Bytes message) {
  SOMA_CHECK(!message.empty() && message.size() <= kMessageSizeMax);
  queued_bytes_ += message.size() + kMessageOverhead;
  queue_.push_back({.message = std::move(message)});
}

ByteView Link::Output() {
  if (current_ == nullptr && !PickFrame()) return {};
  return ByteView(*current_).subspan(current_offset_);
}

void Link::Wrote(std::size_t bytes) {
  if (bytes == 0) return;
  SOMA_CHECK(current_ != nullptr && current_offset_ + bytes <= current_->size());
  current_offset_ += bytes;
  if (current_offset_ < current_->size()) return;
  current_ = nullptr;
  current_offset_ = 0;
}

bool Link::PickFrame() {
  // The quiet is complete when nothing that was written waits for its acknowledgement.
  if (quiesced_due_ && WrittenFrames() == 0) {
    quiesced_due_ = false;
    PushControl(FrameType::kQuiesced);
  }
  const bool may_send_data = state_ == State::kEstablished && !quiet_;
  if (control_.empty() && may_send_data && (next_write_ < sent_.size() || CutNextFrame())) {
    current_ = &sent_[next_write_++].frame;
  } else {
    if (control_.empty() && state_ == State::kEstablished && acknowledge_due_) {
      PushControl(FrameType::kAck);
    }
    if (control_.empty()) return false;
    current_control_ = std::move(control_.front());
    control_.pop_front();
    current_ = &current_control_;
  }
  StampCurrent();
  return true;
}

// Epoch and acknowledgement are those of the moment of writing, also for a frame written again.
void Link::StampCurrent() {
  const auto header = DecodeFrameHeader(*current_);
  SOMA_CHECK(header.has_value());
  if (DecodeHello(*current_)) return;
  FrameHeader stamped = *header;
  stamped.epoch = epoch_;
  stamped.acknowledged = next_received_;
  const auto raw = EncodeFrameHeader(stamped);
  std::copy(raw.begin(), raw.end(), current_->begin());
  acknowledge_due_ = false;
}

bool Link::CutNextFrame() {
  if (queue_.empty()) return false;
  Queued& front = queue_.front();
  const std::size_t left = front.message.size() - front.offset;
  const std::size_t size = std::min(left, kFramePayloadMax);
  if (in_flight_bytes_ + kFrameHeaderSize + size > kWindowBytes) return false;
  const ByteView payload = ByteView(front.message).subspan(front.offset, size);
  const auto raw = EncodeFrameHeader({.type = FrameType::kData,
                                      .flags = size < left ? kFlagMore : std::uint16_t{0},
                                      .epoch = epoch_,
                                      .length = static_cast<std::uint32_t>(size),
                                      .payload_sum = static_cast<std::uint32_t>(Checksum(payload)),
                                      .sequence = next_sequence_});
  Sent sent{.sequence = next_sequence_++};
  sent.frame.reserve(raw.size() + size);
  sent.frame.assign(raw.begin(), raw.end());
  sent.frame.insert(sent.frame.end(), payload.begin(), payload.end());
  in_flight_bytes_ += sent.frame.size();
  queued_bytes_ -= size;
  front.offset += size;
  sent_.push_back(std::move(sent));
  if (front.offset == front.message.size()) {
    queued_bytes_ -= kMessageOverhead;
    queue_.pop_front();
  }
  return true;
}

void Link::PushControl(FrameType type) {
  const auto raw =
      EncodeFrameHeader({.type = type, .payload_sum = static_cast<std::uint32_t>(Checksum({}))});
  control_.emplace_back(raw.begin(), raw.end());
}

std::uint64_t Link::FirstUnacknowledged() const {
  return sent_.empty() ? next_sequence_ : sent_.front().sequence;
}

// Frames of this epoch that were written to their end and are not acknowledged.
std::size_t Link::WrittenFrames() const {
  const bool writing_data = current_ != nullptr && current_ != &current_control_;
  return next_write_ - (writing_data ? 1 : 0);
}

bool Link::Acknowledge(std::uint64_t next_expected) {
  const std::uint64_t first = FirstUnacknowledged();
  if (next_expected <= first) return true;
  const std::uint64_t count = next_expected - first;
  if (count > WrittenFrames()) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    in_flight_bytes_ -= sent_.front().frame.size();
    sent_.pop_front();
  }
  next_write_ -= count;
  return true;
}

bool Link::CanRewind(std::uint64_t next_expected) const {
  return next_expected >= FirstUnacknowledged() && next_expected <= next_sequence_;
}

// Drops what the other side has; the rest is written again.
void Link::Rewind(std::uint64_t next_expected) {
  while (!sent_.empty() && sent_.front().sequence < next_expected) {
    in_flight_bytes_ -= sent_.front().frame.size();
    sent_.pop_front();
  }
  next_write_ = 0;
}

void Link::DropOutput() {
  current_ = nullptr;
  current_offset_ = 0;
  next_write_ = 0;
  control_.clear();
}

void Link::ForgetStreams() {
  DropOutput();
  queue_.clear();
  queued_bytes_ = 0;
  sent_.clear();
  in_flight_bytes_ = 0;
  next_sequence_ = 0;
  next_received_ = 0;
  acknowledge_due_ = false;
  partial_.clear();
}

void Link::Quiesce() {
  SOMA_CHECK(role_ == Role::kHost);
  if (state_ != State::kEstablished) return;
  quiet_ = true;
  PushControl(FrameType::kQuiesce);
}

void Link::Resume() {
  SOMA_CHECK(role_ == Role::kHost);
  if (state_ != State::kEstablished) return;
  quiet_ = false;
  PushControl(FrameType::kResume);
}

}  // namespace soma::wire
