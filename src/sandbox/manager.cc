// SPDX-License-Identifier: Apache-2.0
#include "sandbox/manager.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "crypto/random.h"
#include "egress/broker.h"
#include "policy/model.h"
#include "runtime/guest_link.h"
#include "runtime/runtime.h"
#include "sandbox/egress_gate.h"
#include "sandbox/record.h"
#include "sandbox/sandbox.h"
#include "wire/message.h"

namespace soma::sandbox {
namespace {

using std::chrono::seconds;

// The lease outlives the end time by this much: the server, when it lives, ends the sandbox itself
// and can say why.
constexpr seconds kLeaseGrace{3};
constexpr seconds kAgentPatience{30};
// A guest that was busy when the server came back answers late, but not that late.
constexpr seconds kRecoveryPatience{10};
constexpr seconds kInitPatience{10};
// The launcher's next worker is there within two seconds.
constexpr seconds kUnansweredPatience{60};
constexpr std::chrono::milliseconds kUnansweredPause{200};

// E2B's shape: 'i' and 20 characters.
std::string MakeId(Random& random) {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id = "i";
  while (id.size() < 21) {
    std::array<std::uint8_t, 32> bytes{};
    random.Fill(bytes);
    for (const std::uint8_t byte : bytes) {
      // 252 is the largest multiple of 36 in a byte: no character is more likely than another.
      if (byte < 252 && id.size() < 21) id += kAlphabet[byte % kAlphabet.size()];
    }
  }
  return id;
}

std::uint64_t Epoch(Clock& clock) {
  return static_cast<std::uint64_t>(clock.Now().time_since_epoch().count());
}

}  // namespace

SandboxManager::SandboxManager(const ManagerParts& parts, const ManagerOptions& options)
    : parts_(parts), options_(options), watchers_(parts.loop) {}

seconds SandboxManager::LeaseFor(const SandboxRecord& record) {
  const auto left = std::chrono::ceil<seconds>(record.end_at - parts_.clock.Now());
  return std::max(left, seconds(1)) + kLeaseGrace;
}

void SandboxManager::Record(const SandboxRecord& record, bool start, std::string_view detail) {
  audit::Event event;
  event.kind = start ? audit::EventKind::kStart : audit::EventKind::kEnd;
  event.sandbox = record.id;
  event.tenant = record.tenant;
  event.subject = record.template_id;
  event.fields = {{"level", record.level}};
  event.fields.emplace_back(start ? "profile" : "reason", std::string(detail));
  // An end that cannot be recorded has happened all the same; starts are recorded before.
  (void)parts_.recorder.Record(event, audit::Durability::kSoon);
}

void SandboxManager::RecordRefusal(std::string_view what, const Error& why) {
  audit::Event event;
  event.kind = audit::EventKind::kRefusal;
  event.verdict = audit::Verdict::kDeny;
  event.subject = "api";
  event.object = what;
  event.rule = why.message();
  // It is refused either way.
  (void)parts_.recorder.Record(event, audit::Durability::kSoon);
}

Result<SandboxRecord> SandboxManager::MakeRecord(const CreateRequest& request) {
  if (sandboxes_.size() + starting_ >= options_.sandboxes_max) {
    return Fail(Errc::kResourceExhausted,
                StrCat("this server holds at most ", options_.sandboxes_max, " sandboxes"));
  }
  if (request.timeout <= seconds(0) || request.timeout > options_.timeout_max) {
    return Fail(Errc::kInvalidArgument,
                StrCat("timeout must be 1 to ", options_.timeout_max.count(), " seconds"));
  }
  SOMA_TRY(NetworkPolicyFor(request.network));
  SandboxRecord record;
  record.id = MakeId(parts_.random);
  record.tenant = request.tenant;
  const std::size_t colon = request.template_name.find(':');
  record.template_id = request.template_name.substr(0, colon);
  record.alias = record.template_id;
  record.level = parts_.runtime.level();
  record.metadata = request.metadata;
  record.environment = request.environment;
  record.network = request.network;
  record.envd_token = crypto::RandomHex(parts_.random, 20);
  if (!request.network.allow_public_traffic) {
    record.traffic_token = crypto::RandomHex(parts_.random, 20);
  }
  parts_.random.Fill(record.link_secret);
  parts_.random.Fill(record.guard_token);
  // Milliseconds, because that is what SDKs see: an end time must compare equal to itself.
  record.started_at = std::chrono::floor<std::chrono::milliseconds>(parts_.clock.Now());
  record.end_at = record.started_at + request.timeout;
  return record;
}

aio::Task<std::shared_ptr<Sandbox>> SandboxManager::Create(CreateRequest request) {
  SOMA_CO_ASSIGN(SandboxRecord record, MakeRecord(request));
  audit::Event event;
  event.kind = audit::EventKind::kStart;
  event.sandbox = record.id;
  event.tenant = record.tenant;
  event.subject = record.template_id;
  event.fields = {{"level", record.level}};
  SOMA_CO_TRY(parts_.recorder.Record(event, audit::Durability::kSoon));
  const std::string id = record.id;
  ++starting_;
  auto sandbox = co_await StartNew(record);
  --starting_;
  if (!sandbox) {
    Record(record, false, StrCat("start failed: ", sandbox.error().message()));
    (void)parts_.store.Remove(id);
    co_return std::unexpected(std::move(sandbox).error());
  }
  Adopt(*sandbox);
  co_return *sandbox;
}

aio::Task<std::shared_ptr<Sandbox>> SandboxManager::StartNew(SandboxRecord record) {
  SOMA_CO_TRY(parts_.store.Save(record));
  runtime::StartRequest start;
  start.sandbox_id = record.id;
  start.template_id = record.template_id;
  start.profile = options_.profile;
  start.limits = options_.limits;
  start.lease = LeaseFor(record);
  start.token = record.guard_token;
  auto started = co_await parts_.runtime.Start(std::move(start));
  if (!started) {
    const Errc code = started.error().code();
    if (code == Errc::kUnavailable || code == Errc::kDeadlineExceeded) {
      watchers_.Spawn(EndUnanswered(record.id));
    }
    co_return std::unexpected(std::move(started).error());
  }
  std::unique_ptr<runtime::SandboxHandle> handle = *std::move(started);
  SOMA_CO_ASSIGN(auto sandbox,
                 co_await Connect(std::move(record), std::move(handle), kAgentPatience));
  const Status initialised = co_await SendInit(*sandbox);
  if (!initialised) {
    Detach(*sandbox);
    if (sandbox->gate_) co_await sandbox->gate_->Stop();
    (void)co_await sandbox->handle().Stop();
    co_return std::unexpected(initialised.error());
  }
  co_return sandbox;
}

// Whoever was to start it died or was too slow after it was asked: it may run all the same, until
// its lease ends, and nobody knows it.
aio::Job SandboxManager::EndUnanswered(std::string id) {
  const MonotonicTime end = parts_.clock.MonotonicNow() + kUnansweredPatience;
  while (!co_await parts_.runtime.StopUnknown(id)) {
    if (parts_.clock.MonotonicNow() > end) co_return;
    co_await aio::Sleep(parts_.loop, kUnansweredPause);
  }
}

aio::Task<std::shared_ptr<Sandbox>> SandboxManager::Connect(
    SandboxRecord record, std::unique_ptr<runtime::SandboxHandle> handle, seconds patience) {
  Result<Fd> wire = handle->TakeWire();
  Status status;
  std::unique_ptr<EgressGate> gate = MakeGate(record, *handle);
  std::unique_ptr<runtime::GuestLink> link;
  if (wire) {
    runtime::GuestLinkOptions options;
    options.secret = record.link_secret;
    options.next_secret = record.link_secret;
    options.epoch = Epoch(parts_.clock);
    if (gate) {
      options.on_request = [way_out = gate.get()](auto channel, wire::Message request) {
        way_out->Take(std::move(channel), std::move(request));
      };
    }
    link = std::make_unique<runtime::GuestLink>(parts_.loop, *std::move(wire), std::move(options));
    const auto identity = co_await link->Establish(patience);
    if (!identity) status = std::unexpected(identity.error());
  } else {
    status = std::unexpected(wire.error());
  }
  if (!status) {
    // Whoever does not answer cannot be used; leaving it alive would only cost memory.
    if (link) link->Close("the guest does not answer");
    if (gate) co_await gate->Stop();
    (void)co_await handle->Stop();
    co_return std::unexpected(std::move(status).error().While("connecting to the guest agent"));
  }
  co_return std::make_shared<Sandbox>(parts_.loop, std::move(record), std::move(handle),
                                      std::move(gate), std::move(link));
}

std::unique_ptr<EgressGate> SandboxManager::MakeGate(const SandboxRecord& record,
                                                     runtime::SandboxHandle& handle) {
  if (parts_.egress == nullptr) return nullptr;
  auto policy = NetworkPolicyFor(record.network);
  // Was valid when it was stored; if it is not any more, nothing gets out.
  if (!policy) return nullptr;
  egress::Identity identity{.run = {}, .sandbox = record.id, .tenant = record.tenant};
  return std::make_unique<EgressGate>(*parts_.egress, *std::move(policy), std::move(identity),
                                      handle.TakeCaptures());
}

aio::Task<void> SandboxManager::SendInit(Sandbox& sandbox) {
  const SandboxRecord& record = sandbox.record();
  wire::Init init;
  // What E2B's programs look for.
  init.environment = {{.key = "E2B_SANDBOX", .value = "true"},
                      {.key = "E2B_SANDBOX_ID", .value = record.id},
                      {.key = "E2B_TEMPLATE_ID", .value = record.template_id}};
  for (const auto& [name, value] : record.environment) {
    init.environment.push_back({.key = name, .value = value});
  }
  init.default_user = options_.default_user;
  init.hostname = record.id;
  init.wall_time_us = Epoch(parts_.clock);
  const auto reply = co_await sandbox.link().Call(std::move(init), kInitPatience);
  if (!reply) co_return std::unexpected(reply.error());
  co_return Status();
}

void SandboxManager::Adopt(const std::shared_ptr<Sandbox>& sandbox) {
  sandboxes_.insert_or_assign(sandbox->record().id, sandbox);
  watchers_.Spawn(WatchDeath(sandbox));
  watchers_.Spawn(WatchTimeout(sandbox));
}

void SandboxManager::Detach(Sandbox& sandbox) {
  sandbox.alive_ = false;
  sandboxes_.erase(sandbox.record_.id);
  sandbox.link_->Close("the sandbox has ended");
  sandbox.deadline_changed_.NotifyAll();
}

Result<std::shared_ptr<Sandbox>> SandboxManager::Find(std::string_view tenant,
                                                      std::string_view id) {
  auto sandbox = FindAny(id);
  if (!sandbox || sandbox->record().tenant != tenant) {
    return Fail(Errc::kNotFound, StrCat("Sandbox \"", EscapeForTerminal(id),
                                        "\" doesn't exist or you don't have access to it"));
  }
  return sandbox;
}

std::shared_ptr<Sandbox> SandboxManager::FindAny(std::string_view id) {
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Sandbox>> SandboxManager::List(std::string_view tenant) {
  std::vector<std::shared_ptr<Sandbox>> list;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox->record().tenant == tenant) list.push_back(sandbox);
  }
  return list;
}

Result<std::shared_ptr<Sandbox>> SandboxManager::FindBySignature(const FileSignature& claim) {
  const WallTime now = parts_.clock.Now();
  for (const auto& [id, sandbox] : sandboxes_) {
    const Status status = sandbox->CheckSignature(claim, now);
    if (status) return sandbox;
    // Signed by this one's token, but too late: say that, not "invalid".
    if (status.error().message() != "invalid signature") return std::unexpected(status.error());
  }
  return Fail(Errc::kUnauthenticated, "invalid signature");
}

aio::Task<void> SandboxManager::SetTimeout(std::shared_ptr<Sandbox> sandbox, seconds from_now,
                                           TimeoutChange change) {
  if (from_now < seconds(0) || from_now > options_.timeout_max) {
    co_return Fail(Errc::kInvalidArgument,
                   StrCat("timeout must be 0 to ", options_.timeout_max.count(), " seconds"));
  }
  const WallTime end = std::chrono::floor<std::chrono::milliseconds>(parts_.clock.Now()) + from_now;
  if (change == TimeoutChange::kExtendOnly && end <= sandbox->record_.end_at) {
    co_return Status();
  }
  SandboxRecord changed = sandbox->record_;
  changed.end_at = end;
  SOMA_CO_TRY(parts_.store.Save(changed));
  SOMA_CO_TRY(co_await sandbox->handle().RenewLease(LeaseFor(changed)));
  sandbox->record_.end_at = end;
  sandbox->deadline_changed_.NotifyAll();
  co_return Status();
}

aio::Task<void> SandboxManager::SetNetwork(std::shared_ptr<Sandbox> sandbox, NetworkWish wish) {
  wish.allow_public_traffic = sandbox->record_.network.allow_public_traffic;
  wish.mask_request_host = sandbox->record_.network.mask_request_host;
  SOMA_CO_ASSIGN(policy::Policy policy, NetworkPolicyFor(wish));
  if (!sandbox->gate_) co_return Fail(Errc::kUnimplemented, "this server lets nothing out");
  audit::Event event;
  event.kind = audit::EventKind::kPolicyChange;
  event.sandbox = sandbox->record_.id;
  event.tenant = sandbox->record_.tenant;
  event.subject = "network";
  event.fields = {{"allow_out", Join(wish.allow_out, " ")},
                  {"deny_out", Join(wish.deny_out, " ")},
                  {"allow_internet", wish.allow_internet.value_or(true) ? "true" : "false"}};
  audit::Recorder* recorder = &parts_.recorder;
  const Result<bool> recorded = co_await aio::WorkerPool::Run<bool>(
      parts_.egress->workers, [recorder, event]() -> Result<bool> {
        SOMA_TRY(recorder->Record(event, audit::Durability::kBeforeEffect));
        return true;
      });
  if (!recorded) co_return std::unexpected(recorded.error());
  // Killed meanwhile: its record must not come back.
  if (!sandbox->alive_) co_return Fail(Errc::kNotFound, "the sandbox has ended");
  SandboxRecord changed = sandbox->record_;
  changed.network = std::move(wish);
  SOMA_CO_TRY(parts_.store.Save(changed));
  sandbox->record_.network = std::move(changed.network);
  sandbox->gate_->SetPolicy(std::move(policy));
  co_return Status();
}

aio::Task<void> SandboxManager::Kill(std::shared_ptr<Sandbox> sandbox, std::string why) {
  if (!sandbox->alive_) co_return Status();
  Detach(*sandbox);
  // Not waited for: dials under way may take their whole time, and with the sandbox dead they lead
  // nowhere.
  if (sandbox->gate_) watchers_.Spawn(StopGate(sandbox));
  const Status stopped = co_await sandbox->handle().Stop();
  Record(sandbox->record(), false, stopped ? why : stopped.error().message());
  SOMA_CO_TRY(parts_.store.Remove(sandbox->record().id));
  co_return stopped;
}

aio::Job SandboxManager::StopGate(std::shared_ptr<Sandbox> sandbox) {
  co_await sandbox->gate_->Stop();
}

aio::Job SandboxManager::WatchDeath(std::shared_ptr<Sandbox> sandbox) {
  while (sandbox->alive_) {
    const auto death = co_await sandbox->handle().WaitDeath(std::chrono::hours(1));
    if (!death && death.error().code() == Errc::kDeadlineExceeded) continue;
    if (!sandbox->alive_) co_return;
    (void)co_await Kill(sandbox, death ? death->reason : death.error().message());
  }
}

aio::Job SandboxManager::WatchTimeout(std::shared_ptr<Sandbox> sandbox) {
  while (sandbox->alive_) {
    const auto left = sandbox->record().end_at - parts_.clock.Now();
    if (left <= seconds(0)) {
      (void)co_await Kill(sandbox, "timeout");
      co_return;
    }
    co_await sandbox->deadline_changed_.Wait(left);
  }
}

aio::Task<void> SandboxManager::RecoverOne(SandboxRecord record) {
  SOMA_CO_ASSIGN(auto handle, co_await parts_.runtime.Attach(record.id, record.guard_token));
  SOMA_CO_ASSIGN(const auto sandbox,
                 co_await Connect(std::move(record), std::move(handle), kRecoveryPatience));
  Adopt(sandbox);
  co_return Status();
}

aio::Task<void> SandboxManager::Recover() {
  SOMA_CO_ASSIGN(const auto records, parts_.store.LoadAll());
  SOMA_CO_ASSIGN(const auto living, co_await parts_.runtime.List());
  for (const SandboxRecord& record : records) {
    const bool lives = std::ranges::find(living, record.id) != living.end();
    Status status = Fail(Errc::kNotFound, "it ended while no server lived");
    if (lives) status = co_await RecoverOne(record);
    if (status) continue;
    Record(record, false, status.error().message());
    SOMA_CO_TRY(parts_.store.Remove(record.id));
  }
  for (const std::string& id : living) {
    const bool known = std::ranges::any_of(
        records, [&id](const SandboxRecord& record) { return record.id == id; });
    if (known) continue;
    (void)co_await parts_.runtime.StopUnknown(id);
  }
  co_return Status();
}

}  // namespace soma::sandbox
