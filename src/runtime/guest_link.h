// SPDX-License-Identifier: Apache-2.0
// GuestLink: drives the wire's I/O-free session over a descriptor and gives each operation inside a
// sandbox to a coroutine as a GuestChannel.
//
// One thread (the loop's). Everything that arrives is untrusted; what is kept of it is bounded by
// the session's credit (wire/session.h). When the wire ends or the guest breaks the protocol, every
// open channel gets kUnavailable and the link stays dead: whoever holds the sandbox makes a new
// one. Dropping a channel aborts only the operation, never the task that it watched.
#ifndef SOMA_RUNTIME_GUEST_LINK_H_
#define SOMA_RUNTIME_GUEST_LINK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/result.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {

class GuestCore;
struct GuestMailbox;

// One operation. Move it around by shared_ptr; the last holder's end aborts it.
class GuestChannel {
 public:
  GuestChannel(std::shared_ptr<GuestCore> core, wire::ChannelId id);
  ~GuestChannel();
  GuestChannel(const GuestChannel&) = delete;
  GuestChannel& operator=(const GuestChannel&) = delete;

  // The next message in order. Failed and Reset come as the error they carry, after which the
  // channel is over (kCancelled from then on). A terminal reply is returned and ends it likewise.
  // kDeadlineExceeded when nothing came within `timeout`; waiting again is allowed.
  aio::Task<wire::Message> Next(std::chrono::nanoseconds timeout);
  // All of `bytes`, waiting for the guest to take them; kDeadlineExceeded when it took nothing for
  // `stall_max`. `bytes` must stay valid until the end.
  aio::Task<void> Write(wire::DataKind kind, ByteView bytes, std::chrono::nanoseconds stall_max);
  void Finish();
  // A reply, on a channel that the guest opened.
  Status Reply(const wire::Message& reply);
  // Ends waiting coroutines with kCancelled and tells the guest.
  void Abort(Errc code, const std::string& message);

 private:
  std::shared_ptr<GuestCore> core_;
  wire::ChannelId id_;
  std::shared_ptr<GuestMailbox> mailbox_;
};

struct GuestLinkOptions {
  // Of the sandbox (wire/link.h); the first Hello of its life may carry any.
  wire::LinkSecret secret{};
  wire::LinkSecret next_secret{};
  // Above every epoch before: microseconds of wall time.
  std::uint64_t epoch = 1;
  // What the guest asks for by itself (Open, Datagram). Without a handler it is refused.
  std::function<void(std::shared_ptr<GuestChannel>, wire::Message)> on_request;
  // Denied reports: evidence of the guest, not proof.
  std::function<void(const wire::Denied&)> on_denied;
};

class GuestLink {
 public:
  // `wire`: connected and non-blocking.
  GuestLink(aio::Loop& loop, Fd wire, GuestLinkOptions options);
  // Ends the link at once; channels that are still held get kUnavailable.
  ~GuestLink();
  GuestLink(const GuestLink&) = delete;
  GuestLink& operator=(const GuestLink&) = delete;

  // Says Hello and waits for the guest's Identity. kDeadlineExceeded: no answer.
  aio::Task<wire::Identity> Establish(std::chrono::nanoseconds timeout);
  bool alive() const;
  // Ends the link; every open channel gets kUnavailable with `why`.
  void Close(const std::string& why);

  // Starts an operation; kUnavailable when the link is dead.
  Result<std::shared_ptr<GuestChannel>> Request(const wire::Message& request);
  // For requests with exactly one reply.
  aio::Task<wire::Message> Call(wire::Message request, std::chrono::nanoseconds timeout);

 private:
  std::shared_ptr<GuestCore> core_;
};

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_GUEST_LINK_H_
