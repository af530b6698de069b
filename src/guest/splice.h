// SPDX-License-Identifier: Apache-2.0
// Splice: carries bytes between one socket inside and one duplex channel, with both half-closes.
#ifndef SOMA_GUEST_SPLICE_H_
#define SOMA_GUEST_SPLICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "guest/loop.h"
#include "guest/operation.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {

// Makes the peer see a reset instead of an orderly end when the socket is closed.
void ResetOnClose(const Fd& socket);

// A connection that ends in any other way than by End from both sides is reset, so that nobody
// takes a part for the whole.
class Splice : public Operation {
 public:
  // `socket` doesn't block. Nothing is carried before Begin.
  Splice(Loop& loop, wire::Session& session, wire::ChannelId channel)
      : Operation(session, channel), loop_(loop) {}

  ~Splice() override;

  void OnMessage(wire::Message& message) override;
  void OnWritable() override { Update(); }
  // The channel may be closed while its last bytes still wait for the socket.
  bool HasWork() const override { return socket_ && !pending_.empty(); }

 protected:
  Status Begin(Fd socket);
  // Resets the connection; the channel is over already.
  void Stop();
  Loop& loop() { return loop_; }

 private:
  void OnReady(std::uint32_t events);
  void ReadSocket();
  void WriteSocket();
  void Update();
  void Break();

  Loop& loop_;
  Fd socket_;
  Loop::Registration registration_;
  Bytes pending_;  // from the channel; bounded by its credit, which is given back on writing
  std::size_t written_ = 0;
  bool channel_finished_ = false;  // End came
  bool socket_finished_ = false;   // end of file came
  bool shut_down_ = false;
};

// A connection to a port of 127.0.0.1, or else of ::1. kUnavailable if nobody listens.
class Dialer final : public Splice {
 public:
  using Splice::Splice;
  void Start(std::uint16_t port);

 private:
  void Try(bool ipv6);
  void OnConnected(bool ipv6);
  void Refuse(int error, bool ipv6);

  std::uint16_t port_ = 0;
  Fd connecting_;
  Loop::Registration connected_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_SPLICE_H_
