// SPDX-License-Identifier: Apache-2.0
// Session: a Link with channels on it: typed messages, credit, limits. The same class serves both
// ends; no I/O, no clock, no thread. Its owner moves bytes and handles events.
//
// Host, driving a file descriptor (edge by edge, see also wire/session_test.cc):
//
//   Session session(Role::kHost);
//   session.Hello({.epoch = NowMicroseconds(), .secret = key, .next_secret = key});
//   // whenever readable:
//   session.OnBytes(chunk);                             // at most kInputMax
//   while (auto event = session.Next()) Handle(*event); // until nullopt, then the next chunk
//   // whenever writable, and after every call of a method below; then Next() once more, for
//   // kWritable:
//   for (auto out = session.Output(); !out.empty(); out = session.Output()) {
//     session.Wrote(write(fd, out));                      // stop at EAGAIN
//   }
//
//   // one command:
//   SOMA_ASSIGN(auto run, session.Request(Start{.profile = "rooted",
//                                               .arguments = {"/bin/bash", "-l", "-c", "ls"}}));
//   // events with event.channel == run, in this order:
//   //   Started{pid}; Data{kStdout, ..., bytes} (after passing bytes on: session.Consumed(run,
//   n));
//   //   Exit{code}: terminal, the channel is closed then.
//   // Failed{code, message} instead of any of these is terminal too.
//
//   // one upload: Request(WriteFile{...}); after Opened: Write(channel, kBytes, bytes) as far as
//   it
//   // accepts, more after kWritable; Finish(channel); then Entry arrives (terminal).
//
// When an epoch is not resumed, or the link breaks, each open channel gets a Failed(kUnavailable)
// as its last event; tasks go on inside and can be attached to.
//
// Memory: receiving, a Session holds one chunk and one message. Credit lets a channel send at most
// kChannelWindow bytes that were not Consumed, and those are with the owner, not here. Sending,
// what is queued is bounded by kSendQueueMax for Request and Write (they refuse), and by
// kSendQueueHardMax for all: a guest that makes us answer and never acknowledges breaks its
// session. At most kChannelsMax channels of each side are open; a guest that opens more breaks its
// session, Request refuses. So a hostile guest costs a constant amount of memory (session_test.cc:
// HostileGuestCostsAConstantAmount).
#ifndef SOMA_WIRE_SESSION_H_
#define SOMA_WIRE_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/protocol.h"

namespace soma::wire {

inline constexpr std::size_t kChannelsMax = 1024;
inline constexpr std::size_t kChannelWindow = std::size_t{128} * 1024;
inline constexpr std::size_t kSendQueueMax = std::size_t{512} * 1024;       // host
inline constexpr std::size_t kSendQueueMaxGuest = std::size_t{128} * 1024;  // guest
inline constexpr std::size_t kSendQueueHardMax = std::size_t{2} * 1024 * 1024;

struct SessionEvent {
  enum class Kind : std::uint8_t {
    kEstablished,  // see LinkEvent; `resumed`, `epoch`
    kMessage,      // `channel`, `message`; a request when the other side opened the channel with it
    kWritable,     // `channel`: Write, which had refused bytes before, takes some again
    kQuiesced,
    kResumed,
    kBroken,  // `reason`
  };
  Kind kind = Kind::kBroken;
  ChannelId channel = kControlChannel;
  Message message;
  // For kMessage: this message opened, or closed, the channel.
  bool opens = false;
  bool closes = false;
  bool resumed = false;
  std::uint64_t epoch = 0;
  std::string reason;
};

class Session {
 public:
  explicit Session(Role role);

  // Host: see Link::Hello. Without `resume` every open channel fails at once.
  void Hello(const HelloOptions& options);

  // Takes at most kInputMax bytes; drain Next() before the next call.
  void OnBytes(ByteView bytes) { link_.OnBytes(bytes); }
  // Acks, Ends and what belongs to closed channels are dealt with inside and give no event, except
  // that End is passed on.
  std::optional<SessionEvent> Next();

  ByteView Output();
  void Wrote(std::size_t bytes) { link_.Wrote(bytes); }

  // Opens a channel with a request of this side. kUnavailable without an established link,
  // kResourceExhausted when kChannelsMax or kSendQueueMax is reached, kOutOfRange when a field is
  // beyond its limit. Nothing has happened after an error.
  Result<ChannelId> Request(const Message& request);

  // Sends a reply on an open channel. A terminal reply (see message.h) closes it. kNotFound if it
  // is not open.
  Status Reply(ChannelId channel, const Message& reply);

  // Sends up to the channel's credit and returns how many bytes were taken, 0 included. A short
  // count is followed by a kWritable event when more can be taken.
  std::size_t Write(ChannelId channel, DataKind kind, ByteView bytes);
  // How many bytes Write would take now.
  std::size_t Writable(ChannelId channel) const;
  // Asks for a kWritable event although Write was not called.
  void WantWritable(ChannelId channel);

  // The owner has passed on, or dropped, this many received bytes of Data: the other side may send
  // as many more.
  void Consumed(ChannelId channel, std::size_t bytes);

  // No more Write on this channel. A duplex channel (Dial, Open) closes when both sides have said
  // so.
  void Finish(ChannelId channel);
  // Ends the channel at once. The peer is told. Nothing happens if it is not open.
  void Abort(ChannelId channel, Errc code, std::string message);

  // A message without a channel (Identity, Denied).
  Status Announce(const Message& message);

  void Quiesce() { link_.Quiesce(); }
  void Resume() { link_.Resume(); }

  bool established() const { return link_.established(); }
  std::uint64_t epoch() const { return link_.epoch(); }
  std::size_t channel_count() const { return channels_.size(); }
  // Of these, the ones that this side opened.
  std::size_t own_channel_count() const { return channels_ours_; }
  bool IsOpen(ChannelId channel) const { return channels_.contains(channel); }
  // For tests and statistics.
  std::size_t queued_bytes() const { return link_.queued_bytes(); }

 private:
  struct Channel {
    RequestKind request = 0;
    bool ours = false;  // this side opened it
    bool finished_here = false;
    bool finished_there = false;
    bool wants_writable = false;
    std::uint64_t sent = 0;  // offset of the next Data from here
    std::uint64_t peer_consumed = 0;
    std::uint64_t received = 0;  // offset of the next Data from there
    std::uint64_t consumed = 0;
    std::uint64_t acknowledged = 0;  // the last Ack sent
  };
  using Channels = std::map<ChannelId, Channel>;
  using MaybeEvent = std::optional<SessionEvent>;

  MaybeEvent OnLinkEvent(LinkEvent event);
  MaybeEvent OnMessage(const Bytes& bytes);
  MaybeEvent OnRequest(Envelope envelope);
  MaybeEvent OnChannelMessage(Channels::iterator it, Envelope envelope);
  bool AcceptData(Channel& channel, const Data& data);
  void AcceptAck(Channel& channel, const Ack& ack);
  MaybeEvent Break(std::string reason);
  MaybeEvent NextWritable();
  void FailAllChannels();
  void Close(Channels::iterator it);
  bool SendNow(ChannelId channel, const Message& message);
  std::size_t Room(const Channel& channel) const;
  Role role() const { return link_.role(); }

  Link link_;
  const std::size_t send_queue_max_;
  Channels channels_;
  std::size_t channels_ours_ = 0;
  std::vector<ChannelId> orphans_;    // closed by the end of an epoch, owner not told yet
  MaybeEvent held_;                   // told after the orphans
  std::vector<ChannelId> wanting_;    // channels with wants_writable
  ChannelId next_channel_ = 0;        // the last one opened here
  ChannelId last_there_ = 0;          // the last one that the other side opened
  std::optional<std::string> fault_;  // why the session must break, found while sending
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_SESSION_H_
