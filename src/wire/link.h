// SPDX-License-Identifier: Apache-2.0
// Link: makes a byte channel that may be cut, and may deliver stale or half frames after a cut,
// carry messages reliably. One object at each end; no I/O, no clock, no thread.
//
// The channel (a socketpair, or virtio-serial) must deliver bytes in order while nobody reconnects.
// At a reconnect bytes may be lost in both directions, and old bytes may still arrive. Therefore:
//  - The host alone starts an epoch, with HELLO; the guest answers HELLO_ACK. Frames of other
//    epochs are dropped. Epochs only grow.
//  - A *resumed* epoch continues the message streams: each side tells which frame it expects next,
//    and the other rewinds to it. Nothing is lost or doubled. Needs the same Link object at the
//    host.
//  - A *fresh* epoch forgets both streams (a new server process, a clone). The guest keeps its
//    tasks; their output can be attached to again from the beginning (wire/message.h).
//  - HELLO is found anywhere in the guest's input, even inside a frame that was cut. It has to
//  carry
//    the secret of the epoch before, so that bytes of a task or of an upload can't forge one. The
//    first HELLO of a guest's life is accepted with any secret: no task runs before it.
//
// Limits: a frame 16 KiB; sent and not acknowledged 128 KiB (kWindowBytes: below the 180 KiB of a
// socket's buffer, which also prevents a clone that is dead from birth); a message 256 KiB. A Link
// never holds more than kWindowBytes + the messages that its owner queued + one message being put
// together + one OnBytes call. The input is untrusted: a hostile guest can break the link, nothing
// else.
//
//   link.OnBytes(chunk);                       // at most kInputMax at a time, then drain events
//   while (auto event = link.Next()) Handle(*event);
//   while (ByteView out = link.Output(); !out.empty()) link.Wrote(WriteSome(out));
#ifndef SOMA_WIRE_LINK_H_
#define SOMA_WIRE_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "wire/frame.h"

namespace soma::wire {

inline constexpr std::size_t kWindowBytes = std::size_t{128} * 1024;
inline constexpr std::size_t kMessageSizeMax = std::size_t{256} * 1024;
// What a queued message costs beside its bytes, so that a queue of tiny ones is bounded as well.
inline constexpr std::size_t kMessageOverhead = 64;
// The most that one OnBytes call may bring.
inline constexpr std::size_t kInputMax = std::size_t{64} * 1024;

enum class Role : std::uint8_t { kHost, kGuest };

// What the host says in HELLO.
struct HelloOptions {
  // Higher than any epoch before; microseconds of wall time serve well across server restarts. If
  // the guest's epoch is not lower, the Link raises its own above it and says HELLO again.
  std::uint64_t epoch = 1;
  LinkSecret secret{};       // of the epoch before; any for the first HELLO of a guest's life
  LinkSecret next_secret{};  // from now on; the same as `secret` unless the guest was cloned
  bool resume = false;       // continue this Link's streams
};

struct LinkEvent {
  enum class Kind : std::uint8_t {
    kEstablished,  // a new epoch stands; `resumed` says whether the streams go on
    kMessage,      // a whole message, in `message`
    kQuiesced,     // host: guest has stopped and all is acknowledged. Guest: the host asked for it
    kResumed,      // guest: the host said Resume, or a new epoch ended the quiet
    kBroken,       // the other side broke the protocol, `reason` says how. Host: this Link is over
                   // until the next Hello. Guest: it waits for the next HELLO.
  };
  Kind kind = Kind::kBroken;
  bool resumed = false;
  std::uint64_t epoch = 0;
  Bytes message;
  std::string reason;
};

class Link {
 public:
  explicit Link(Role role) : role_(role) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Host: begins an epoch; everything that arrives before its HELLO_ACK is dropped. May be called
  // at any time, again with a higher epoch when the answer stays away.
  void Hello(const HelloOptions& options);

  // Takes at most kInputMax bytes; drain Next() before the next call.
  void OnBytes(ByteView bytes);
  std::optional<LinkEvent> Next();

  // Queues a message of 1 to kMessageSizeMax bytes. Queued messages of a fresh epoch's predecessor
  // are dropped. Bound the queue by queued_bytes(): the Link itself does not refuse.
  void Send(Bytes message);
  // Bytes of messages that have not been put into frames yet, and kMessageOverhead for each.
  std::size_t queued_bytes() const { return queued_bytes_; }
  // Bytes of frames that the other side has not acknowledged.
  std::size_t in_flight_bytes() const { return in_flight_bytes_; }

  // The next bytes to write, at most one frame; empty when there is nothing to do. Valid until the
  // next call of another method. Write a frame by one write call where the channel is
  // virtio-serial.
  ByteView Output();
  void Wrote(std::size_t bytes);

  // Host: asks the guest to stop at a frame boundary; kQuiesced follows. Meanwhile nothing is sent
  // from here either. Keep reading until the machine is stopped.
  void Quiesce();
  // Host: ends the quiet. A new epoch ends it too.
  void Resume();

  // Treats the link as broken by the other side, as after kBroken but without the event; what was
  // queued is dropped at a host. For an owner that found nonsense inside a message.
  void Abandon();

  bool established() const { return state_ == State::kEstablished; }
  std::uint64_t epoch() const { return epoch_; }
  Role role() const { return role_; }

 private:
  enum class State : std::uint8_t { kIdle, kHelloSent, kEstablished, kBroken };
  struct Sent {
    Bytes frame;
    std::uint64_t sequence = 0;
  };
  struct Queued {
    Bytes message;
    std::size_t offset = 0;
  };
  using MaybeEvent = std::optional<LinkEvent>;

  // Each looks at the front of the input; false when it needs more bytes to go on.
  bool Step(MaybeEvent& event);
  bool StepFrame(MaybeEvent& event);
  // Finds a trusted hello frame at `from` or later and takes it, with all that stands before it.
  bool FindHello(std::size_t from, MaybeEvent& event);
  void TakeHello(const HelloFrame& hello, MaybeEvent& event);
  void TakeHelloAsGuest(const HelloFrame& hello, MaybeEvent& event);
  void TakeHelloReplyAsHost(const HelloFrame& hello, MaybeEvent& event);
  bool IsTrusted(const HelloFrame& hello) const;
  void TakeFrame(const FrameHeader& header, ByteView payload, MaybeEvent& event);
  void TakeData(const FrameHeader& header, ByteView payload, MaybeEvent& event);
  void TakeQuiet(FrameType type, MaybeEvent& event);
  void Break(std::string reason, MaybeEvent& event);
  void Establish(bool resumed, MaybeEvent& event);
  bool Acknowledge(std::uint64_t next_expected);
  bool CanRewind(std::uint64_t next_expected) const;
  void Rewind(std::uint64_t next_expected);
  std::uint64_t FirstUnacknowledged() const;
  std::size_t WrittenFrames() const;
  void ForgetStreams();
  void DropOutput();
  void SayHello();
  void PushControl(FrameType type);
  bool CutNextFrame();
  bool PickFrame();
  void StampCurrent();
  void Consume(std::size_t bytes);
  ByteView Pending() const { return ByteView(input_).subspan(input_offset_); }

  const Role role_;
  State state_ = State::kIdle;
  std::uint64_t epoch_ = 0;
  bool has_secret_ = false;  // guest
  LinkSecret secret_{};      // guest
  HelloOptions hello_;       // host

  // Receiving.
  Bytes input_;
  std::size_t input_offset_ = 0;
  std::size_t scanned_ = 0;  // bytes of Pending() that hold no begin of a HELLO
  std::uint64_t next_received_ = 0;
  bool acknowledge_due_ = false;
  Bytes partial_;  // a message whose last frame has not arrived

  // Sending.
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  std::deque<Sent> sent_;  // not acknowledged, in order
  std::size_t in_flight_bytes_ = 0;
  std::size_t next_write_ = 0;  // index in sent_ of the next frame to begin writing (again)
  std::uint64_t next_sequence_ = 0;
  std::deque<Bytes> control_;  // frames without a number; go before data
  Bytes* current_ = nullptr;   // the frame being written: in sent_, or current_control_
  Bytes current_control_;
  std::size_t current_offset_ = 0;

  // Quiet.
  bool quiet_ = false;
  bool quiesced_due_ = false;  // guest: kQuiesced is owed once all is acknowledged
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_LINK_H_
