// SPDX-License-Identifier: Apache-2.0
// EgressGate: one sandbox's way out. At `container` it serves the sockets that catch the sandbox's
// connects; a virtual machine's guest agent asks over the wire instead (Open, Datagram). Both end
// at the same broker (egress/broker.h), which decides, dials and records.
//
// While this object does not live nothing gets out. What the guest asks for is untrusted; its
// number is bounded by the wire's channels and the broker's limits.
#ifndef SOMA_SANDBOX_EGRESS_GATE_H_
#define SOMA_SANDBOX_EGRESS_GATE_H_

#include <memory>
#include <utility>

#include "aio/loop.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "base/result.h"
#include "egress/broker.h"
#include "egress/capture_service.h"
#include "policy/model.h"
#include "runtime/guest_link.h"
#include "runtime/runtime.h"
#include "sandbox/record.h"
#include "wire/message.h"

namespace soma::sandbox {

// Everything public, narrowed by what the sandbox's maker wished for; loopback, private networks
// and the host's own addresses stay closed. kInvalidArgument for a wish that E2B refuses, too.
Result<policy::Policy> NetworkPolicyFor(const NetworkWish& wish);

class EgressGate {
 public:
  // `captures` may be empty.
  EgressGate(const egress::Services& services, policy::Policy policy, egress::Identity identity,
             runtime::CaptureSockets captures);
  // Stop must have ended.
  ~EgressGate() = default;
  EgressGate(const EgressGate&) = delete;
  EgressGate& operator=(const EgressGate&) = delete;

  // For what is asked from now on; streams that are open stay open.
  void SetPolicy(policy::Policy policy) { broker_.SetPolicy(std::move(policy)); }

  // Of the guest: Open and Datagram; everything else is refused.
  void Take(std::shared_ptr<runtime::GuestChannel> channel, wire::Message request);

  // Closes the way and waits for what is under way. The guest's link must be closed before, since
  // that ends its streams.
  aio::Job Stop();

 private:
  aio::Job Carry(std::shared_ptr<runtime::GuestChannel> channel, wire::Open request);

  aio::Loop& loop_;
  egress::Broker broker_;
  std::unique_ptr<egress::CaptureService> service_;
  aio::TaskGroup streams_;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_EGRESS_GATE_H_
