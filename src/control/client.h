// SPDX-License-Identifier: Apache-2.0
// The asking side of control/messages.h as an I/O-free state machine: it numbers requests, matches
// replies to them and hands out events. The caller moves packets and descriptors; several requests
// may be under way on one connection, replies come in any order.
//
//   auto packet = client.Ask(request);        // send it as one SEQPACKET packet
//   auto incoming = client.Receive(bytes, n); // n = descriptors that came with it
//   incoming->sequence                        // == the number that Ask returned, 0 for an event
//
// What comes from a launcher or monitor is trusted no further than its form: a reply that nobody
// asked for, of another verb, or with another number of descriptors than it says is an error, after
// which the connection is to be closed (and the descriptors too).
#ifndef SOMA_CONTROL_CLIENT_H_
#define SOMA_CONTROL_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/bytes.h"
#include "base/result.h"
#include "control/messages.h"

namespace soma::control {

class Client {
 public:
  // More than this under way is refused with kResourceExhausted: a launcher that does not answer
  // must not make its client grow.
  static constexpr std::size_t kUnderWayMax = 1024;

  struct Asked {
    Packet packet;
    std::uint32_t sequence = 0;
  };
  // Gives the request its sequence number (whatever it held before) and remembers it.
  Result<Asked> Ask(Request request);

  // kDataLoss for everything that breaks the protocol.
  Result<Reply> Receive(ByteView packet, std::size_t descriptor_count);

  std::size_t under_way() const { return under_way_.size(); }

 private:
  std::uint32_t next_sequence_ = 1;
  std::map<std::uint32_t, Verb> under_way_;
};

}  // namespace soma::control

#endif  // SOMA_CONTROL_CLIENT_H_
