// SPDX-License-Identifier: Apache-2.0
#include "egress/broker.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/task.h"
#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "egress/dial.h"
#include "egress/name_table.h"
#include "egress/socket_address.h"
#include "parse/dns.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/model.h"
#include "sys/fd.h"

namespace soma::egress {

namespace {

constexpr std::size_t kDialledMax = 4;       // addresses of one name that are tried
constexpr std::size_t kRefusalsKept = 1024;  // objects whose refusals are counted
constexpr std::uint32_t kTtlSeconds = 60;    // an address is for good; this only bounds caches

std::string ObjectOf(const policy::ConnectRequest& request) {
  if (!request.address) return StrCat(request.name, ":", request.port);
  const std::string text = policy::FormatAddress(*request.address);
  return request.address->IsV4() ? StrCat(text, ":", request.port)
                                 : StrCat("[", text, "]:", request.port);
}

std::array<std::uint8_t, 4> NetworkOrder(std::uint32_t address) {
  return {static_cast<std::uint8_t>(address >> 24), static_cast<std::uint8_t>(address >> 16),
          static_cast<std::uint8_t>(address >> 8), static_cast<std::uint8_t>(address)};
}

}  // namespace

// Counts one request for as long as this lives.
class Broker::Counted {
 public:
  explicit Counted(std::size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::size_t& count_;
};

Broker::Broker(const Services& services, policy::Policy policy, Identity identity, Limits limits)
    : services_(services),
      policy_(std::make_shared<const policy::Policy>(std::move(policy))),
      identity_(std::move(identity)),
      limits_(limits),
      looked_up_(services.loop) {}

Broker::~Broker() { SOMA_CHECK(opening_ == 0); }

void Broker::SetPolicy(policy::Policy policy) {
  policy_ = std::make_shared<const policy::Policy>(std::move(policy));
}

audit::Event Broker::EventFor(std::string_view what, const std::string& object,
                              const policy::Decision& decision) const {
  audit::Event event;
  event.kind = audit::EventKind::kEgressDecision;
  event.verdict = decision.allowed ? audit::Verdict::kAllow : audit::Verdict::kDeny;
  event.run = identity_.run;
  event.sandbox = identity_.sandbox;
  event.tenant = identity_.tenant;
  event.subject = what;
  event.object = object;
  event.rule = decision.rule;
  event.remedy = decision.remedy;
  if (!decision.origin.where.empty()) event.fields.emplace_back("origin", decision.origin.ToText());
  return event;
}

std::unexpected<Error> Broker::Refuse(std::string_view what, const std::string& object,
                                      const policy::Decision& decision) {
  const auto known = refusals_.find(StrCat(what, " ", object));
  const bool is_counted = known != refusals_.end() || refusals_.size() < kRefusalsKept;
  // Whoever makes up a new name each time must not fill the record either.
  const std::uint64_t count =
      is_counted ? ++refusals_[StrCat(what, " ", object)] : ++other_refusals_;
  if (std::has_single_bit(count)) {
    audit::Event event = EventFor(what, object, decision);
    if (!is_counted) event.fields.emplace_back("beyond", "one of many objects");
    if (count > 1) event.fields.emplace_back("count", StrCat(count));
    // The refusal stands whether or not it could be written down.
    (void)services_.recorder.Record(event, audit::Durability::kSoon);
  }
  std::string message = StrCat(what, " ", object, " is refused: ", decision.rule);
  if (!decision.remedy.empty()) message += StrCat("; to allow it: ", decision.remedy);
  return Fail(Errc::kPermissionDenied, std::move(message));
}

Bytes Broker::Answer(ByteView message) {
  const auto query = parse::ParseDnsQuery(message);
  if (!query) {
    const auto id = parse::DnsIdOf(message);
    return id ? parse::BuildDnsFormatError(*id) : Bytes();
  }
  const auto answer = [&](const parse::DnsAnswer& content) {
    return parse::BuildDnsAnswer(*query, content);
  };
  if (query->class_number != parse::kDnsClassInternet) {
    return answer({.code = parse::DnsCode::kNotImplemented});
  }
  const policy::Decision decision = policy::DecideLookup(*policy_, query->name);
  if (!decision.allowed) {
    (void)Refuse("lookup", query->name, decision);
    return answer({.code = parse::DnsCode::kNameError});
  }
  // The name exists; only IPv4 addresses are given out, so other types have no
  // data.
  if (query->type != parse::kDnsTypeA) return answer({});
  const auto name = policy::NormalHostName(query->name);
  const auto address = name ? names_.AddressFor(*name) : std::nullopt;
  if (!address) return answer({.code = parse::DnsCode::kServerFailure});
  return answer({.address = NetworkOrder(*address), .ttl_seconds = kTtlSeconds});
}

aio::Task<Fd> Broker::OpenAddress(Endpoint to) {
  policy::ConnectRequest request{.address = to.address, .port = to.port};
  if (to.address.IsV4() && NameTable::IsSynthetic(to.address.AsV4())) {
    const std::string* name = names_.NameOf(to.address.AsV4());
    if (name == nullptr) {
      co_return Refuse("connect", ObjectOf(request),
                       {.rule = "an address that was given out for no name"});
    }
    request = {.name = *name, .port = to.port};
  }
  co_return co_await Open(std::move(request));
}

aio::Task<Fd> Broker::OpenName(std::string name, std::uint16_t port) {
  co_return co_await Open({.name = std::move(name), .port = port});
}

aio::Task<std::vector<policy::IpAddress>> Broker::Addresses(policy::ConnectRequest request) {
  if (request.address) co_return std::vector<policy::IpAddress>{*request.address};
  const auto name = policy::NormalHostName(request.name);
  if (!name) co_return Fail(Errc::kInvalidArgument, "not a host name");
  const auto end = std::chrono::steady_clock::now() + limits_.lookup_timeout;
  while (looking_up_ >= limits_.looking_up_max) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      co_return Fail(Errc::kDeadlineExceeded,
                     StrCat("cannot resolve ", *name, ": the names before it do not resolve"));
    }
    co_await looked_up_.Wait(left);
  }
  auto addresses = co_await LookUp(*name);
  looked_up_.NotifyAll();
  co_return addresses;
}

aio::Task<std::vector<policy::IpAddress>> Broker::LookUp(std::string name) {
  const Counted looking_up(looking_up_);
  co_return co_await services_.resolver.Resolve(std::move(name));
}

aio::Task<Fd> Broker::Open(policy::ConnectRequest request) {
  if (opening_ >= limits_.opening_max) {
    co_return Fail(Errc::kResourceExhausted, "too many connections are being opened at one time");
  }
  const Counted opening(opening_);
  // This request is judged by one policy from its beginning to its end.
  const std::shared_ptr<const policy::Policy> policy = policy_;
  const std::string object = ObjectOf(request);
  const policy::Decision decision = policy::DecideConnect(*policy, request);
  if (!decision.allowed) co_return Refuse("connect", object, decision);
  SOMA_CO_ASSIGN(const std::vector<policy::IpAddress> found, co_await Addresses(request));
  SOMA_CO_ASSIGN(const std::vector<policy::IpAddress> own, HostAddresses());
  std::vector<policy::IpAddress> allowed;
  policy::Decision last = decision;
  for (const policy::IpAddress& address : found) {
    policy::Decision dial = policy::DecideDial(*policy, request, address, own);
    if (!dial.allowed) {
      last = std::move(dial);
    } else if (allowed.size() < kDialledMax) {
      allowed.push_back(address);
    }
  }
  if (allowed.empty()) {
    const std::string to = request.address || found.empty()
                               ? object
                               : StrCat(object, " at ", policy::FormatAddress(found.front()));
    co_return Refuse("connect", to, last);
  }
  SOMA_CO_TRY(co_await RecordAllowed(object, decision, allowed));
  co_return co_await DialFirst(std::move(allowed), request.port);
}

aio::Task<void> Broker::RecordAllowed(std::string object, policy::Decision decision,
                                      std::vector<policy::IpAddress> addresses) {
  audit::Event event = EventFor("connect", object, decision);
  std::vector<std::string> texts;
  texts.reserve(addresses.size());
  for (const policy::IpAddress& address : addresses) {
    texts.push_back(policy::FormatAddress(address));
  }
  event.fields.emplace_back("addresses", Join(texts, " "));
  audit::Recorder* recorder = &services_.recorder;
  const Result<bool> recorded =
      co_await aio::WorkerPool::Run<bool>(services_.workers, [recorder, event]() -> Result<bool> {
        SOMA_TRY(recorder->Record(event, audit::Durability::kBeforeEffect));
        return true;
      });
  // What can't be written down does not happen.
  if (!recorded) co_return std::unexpected(recorded.error());
  co_return Status();
}

aio::Task<Fd> Broker::DialFirst(std::vector<policy::IpAddress> addresses, std::uint16_t port) {
  std::optional<Error> last;
  for (const policy::IpAddress& address : addresses) {
    Result<Fd> dialled = co_await Dial(services_.loop, {address, port}, limits_.dial_timeout);
    if (dialled) co_return dialled;
    last = dialled.error();
  }
  co_return std::unexpected(*last);
}

}  // namespace soma::egress
