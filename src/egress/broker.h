// SPDX-License-Identifier: Apache-2.0
// Broker: the only way out of one sandbox. It is told "this sandbox wants this name or address, on
// this port", decides by the policy, resolves, decides on the address again, records, and dials
// exactly the address that it decided on.
//
// It sees the same requests whether the sandbox's sockets are captured (capture_service.h) or a
// guest agent sends Open and Datagram. Everything that comes in is hostile. Runs on its loop's
// thread; nothing here blocks it.
#ifndef SOMA_EGRESS_BROKER_H_
#define SOMA_EGRESS_BROKER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/result.h"
#include "egress/name_table.h"
#include "egress/resolver.h"
#include "egress/socket_address.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/model.h"

namespace soma::egress {

// Who is asking, for the record.
struct Identity {
  std::string run;
  std::string sandbox;
  std::string tenant;
};

// Shared by brokers; all outlive them. `recorder` must be safe to use from the workers' threads.
struct Services {
  aio::Loop& loop;
  aio::WorkerPool& workers;
  audit::Recorder& recorder;
  Resolver& resolver;
};

struct Limits {
  std::size_t opening_max = 64;  // requests that are being resolved and dialled at one time
  // Names that are looked up at one time; further ones wait, so that one sandbox's slow names leave
  // the other sandboxes' a thread.
  std::size_t looking_up_max = 2;
  std::chrono::seconds lookup_timeout{60};  // waiting included
  std::chrono::seconds dial_timeout{10};
};

class Broker {
 public:
  Broker(const Services& services, policy::Policy policy, Identity identity, Limits limits = {});
  // All Open calls must have ended.
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  // For requests from now on; streams that are open stay open.
  void SetPolicy(policy::Policy policy);

  // Answers one DNS message; empty when it deserves no answer. A name that no rule could allow does
  // not exist; the others get a synthetic address, without asking anybody outside.
  Bytes Answer(ByteView query);

  // A connection to where a sandbox's connect to this address was meant to go: a synthetic address
  // stands for its name. Fails with kPermissionDenied (message: the rule and its remedy) when the
  // policy refuses, kResourceExhausted when too many are being opened, kUnavailable or what
  // dialling said otherwise. An allowance is durably in the record before anything is sent.
  aio::Task<Fd> OpenAddress(Endpoint to);
  aio::Task<Fd> OpenName(std::string name, std::uint16_t port);

 private:
  class Counted;

  aio::Task<Fd> Open(policy::ConnectRequest request);
  aio::Task<std::vector<policy::IpAddress>> Addresses(policy::ConnectRequest request);
  aio::Task<std::vector<policy::IpAddress>> LookUp(std::string name);
  aio::Task<void> RecordAllowed(std::string object, policy::Decision decision,
                                std::vector<policy::IpAddress> addresses);
  aio::Task<Fd> DialFirst(std::vector<policy::IpAddress> addresses, std::uint16_t port);
  std::unexpected<Error> Refuse(std::string_view what, const std::string& object,
                                const policy::Decision& decision);
  audit::Event EventFor(std::string_view what, const std::string& object,
                        const policy::Decision& decision) const;

  Services services_;
  std::shared_ptr<const policy::Policy> policy_;
  Identity identity_;
  Limits limits_;
  NameTable names_;
  std::size_t opening_ = 0;
  std::size_t looking_up_ = 0;
  aio::Condition looked_up_;
  // How often each thing was refused. Only the 1st, 2nd, 4th, 8th, … time is recorded: a loop
  // inside must not fill the disk.
  std::unordered_map<std::string, std::uint64_t> refusals_;
  std::uint64_t other_refusals_ = 0;  // of objects beyond those
};

}  // namespace soma::egress

#endif  // SOMA_EGRESS_BROKER_H_
