// SPDX-License-Identifier: Apache-2.0
// EgressGate: the way out of a virtual machine. Holds the listeners that catch every connection and
// DNS query inside (walls/capture.h), and turns each connection into an Open and each query into a
// Datagram on the wire; whoever is at the other end decides. Without an established wire, or beyond
// the limits, a connection is reset and a query dropped: nothing gets out while nobody decides.
// DNS over TCP is a connection to port 53 for the decider: it has the queries in its stream.
//
// In a container this isn't used: there the sockets themselves are handed to the broker.
#ifndef SOMA_GUEST_EGRESS_GATE_H_
#define SOMA_GUEST_EGRESS_GATE_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "guest/loop.h"
#include "guest/operation.h"
#include "sys/fd.h"
#include "wire/session.h"

namespace soma::guest {

// In the order of walls::CaptureSockets. Any may be empty.
struct CaptureListeners {
  Fd tcp4;
  Fd tcp6;
  Fd dns_udp4;
  Fd dns_tcp4;
};

class EgressGate {
 public:
  // Connections on their way and queries without an answer, together.
  static constexpr std::size_t kOpenMax = 512;

  // Takes over an operation on a channel that this side opened.
  using Keep = std::function<void(wire::ChannelId, std::unique_ptr<Operation>)>;

  EgressGate(Loop& loop, wire::Session& session, Keep keep)
      : loop_(loop), session_(session), keep_(std::move(keep)) {}

  Status Serve(CaptureListeners listeners);
  bool serving() const { return static_cast<bool>(registrations_[0]); }

 private:
  void OnConnection(const Fd& listener);
  void OnQuery();

  Loop& loop_;
  wire::Session& session_;
  Keep keep_;
  CaptureListeners listeners_;
  std::array<Loop::Registration, 4> registrations_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_EGRESS_GATE_H_
