// SPDX-License-Identifier: Apache-2.0
#include "sandbox/egress_gate.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "aio/stream.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "egress/broker.h"
#include "egress/capture_service.h"
#include "egress/dns_stream.h"
#include "egress/e2b_network.h"
#include "policy/address.h"
#include "policy/model.h"
#include "runtime/guest_link.h"
#include "runtime/guest_stream.h"
#include "runtime/runtime.h"
#include "sandbox/record.h"
#include "wire/message.h"

namespace soma::sandbox {
namespace {

constexpr std::chrono::hours kIdleMax{2};

}  // namespace

Result<policy::Policy> NetworkPolicyFor(const NetworkWish& wish) {
  policy::NetworkRules base;
  base.fallback_allow = {.value = false, .origin = {.where = "built-in sandbox", .line = 0}};
  base.rules.push_back({.allow = true,
                        .target = {.host = "*", .cidr = std::nullopt, .ports = {}},
                        .text = "*",
                        .origin = {.where = "built-in sandbox", .line = 0}});
  SOMA_ASSIGN(policy::NetworkRules wished,
              egress::RulesFromE2b({.allow_out = wish.allow_out,
                                    .deny_out = wish.deny_out,
                                    .allow_internet_access = wish.allow_internet.value_or(true)}));
  policy::Policy policy;
  policy.profile = "sandbox";
  policy.filesystem.emplace_back();
  policy.environment.emplace_back();
  policy.network.push_back(std::move(base));
  policy.network.push_back(std::move(wished));
  return policy;
}

EgressGate::EgressGate(const egress::Services& services, policy::Policy policy,
                       egress::Identity identity, runtime::CaptureSockets captures)
    : loop_(services.loop),
      broker_(services, std::move(policy), std::move(identity)),
      streams_(services.loop) {
  if (!captures.tcp4) return;
  service_ = std::make_unique<egress::CaptureService>(
      loop_, broker_,
      egress::CaptureListeners{.tcp4 = std::move(captures.tcp4),
                               .tcp6 = std::move(captures.tcp6),
                               .dns_udp4 = std::move(captures.dns_udp),
                               .dns_tcp4 = std::move(captures.dns_tcp)},
      egress::CaptureService::Limits{});
}

void EgressGate::Take(std::shared_ptr<runtime::GuestChannel> channel, wire::Message request) {
  if (auto* open = std::get_if<wire::Open>(&request)) {
    streams_.Spawn(Carry(std::move(channel), std::move(*open)));
  } else if (const auto* datagram = std::get_if<wire::Datagram>(&request)) {
    (void)channel->Reply(wire::DatagramReply{.bytes = broker_.Answer(datagram->bytes)});
  } else {
    (void)channel->Reply(wire::Failed{.code = Errc::kPermissionDenied,
                                      .errno_value = EACCES,
                                      .message = "a guest may ask for connections and names only"});
  }
}

aio::Job EgressGate::Carry(std::shared_ptr<runtime::GuestChannel> channel, wire::Open request) {
  if (request.port == egress::kDnsPort) {
    // As where sockets are captured: every connection to this port is for our resolver.
    if (!channel->Reply(wire::Opened{})) co_return;
    const auto queries = runtime::MakeGuestStream(std::move(channel));
    (void)co_await egress::ServeDnsStream(broker_, *queries);
    co_return;
  }
  const auto address = policy::ParseIpAddress(request.host);
  auto socket = address ? co_await broker_.OpenAddress({.address = *address, .port = request.port})
                        : co_await broker_.OpenName(request.host, request.port);
  if (!socket) {
    (void)channel->Reply(wire::Failed{.code = socket.error().code(),
                                      .errno_value = socket.error().errno_value(),
                                      .message = socket.error().message()});
    co_return;
  }
  if (!channel->Reply(wire::Opened{})) co_return;
  const auto outside = aio::MakeSocketStream(loop_, *std::move(socket));
  const auto inside = runtime::MakeGuestStream(std::move(channel));
  (void)co_await aio::Splice(loop_, *outside, *inside, kIdleMax);
}

aio::Job EgressGate::Stop() {
  if (service_) co_await service_->Stop();
  while (!co_await streams_.Join(std::chrono::hours(1))) {
  }
}

}  // namespace soma::sandbox
