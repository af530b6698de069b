// SPDX-License-Identifier: Apache-2.0
// SandboxManager: every sandbox of this server, from create to destroy.
//
// Guarantees: a sandbox is in the store before it is started and out of it after it has ended, so a
// server that dies anywhere leaves nothing that the next one does not find (Recover). Its end time
// is also the runtime's lease: it ends then even if no server lives. Another tenant's sandbox
// behaves as unknown. Every start and end is recorded, and what can't be recorded is not started.
//
// One thread (the loop's).
#ifndef SOMA_SANDBOX_MANAGER_H_
#define SOMA_SANDBOX_MANAGER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "audit/recorder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "egress/broker.h"
#include "parse/json.h"
#include "runtime/runtime.h"
#include "sandbox/record.h"
#include "sandbox/sandbox.h"
#include "sandbox/sandbox_store.h"

namespace soma::sandbox {

struct CreateRequest {
  std::string tenant;
  std::string template_name;  // id, alias, or either with ":tag"
  std::chrono::seconds timeout{300};
  parse::StringPairs metadata;
  parse::StringPairs environment;
  NetworkWish network;
};

struct ManagerOptions {
  std::size_t sandboxes_max = 1000;
  std::chrono::seconds timeout_max = std::chrono::hours(24);
  runtime::Limits limits;
  runtime::Profile profile = runtime::Profile::kRooted;
  // As whom commands run unless told otherwise; "" leaves it to the guest agent.
  std::string default_user;
};

// What it works with; owned by main and alive longer.
struct ManagerParts {
  aio::Loop& loop;
  Clock& clock;
  Random& random;
  runtime::Runtime& runtime;
  SandboxStore& store;
  audit::Recorder& recorder;
  // Null: nothing gets out of any sandbox.
  const egress::Services* egress = nullptr;
};

class SandboxManager {
 public:
  SandboxManager(const ManagerParts& parts, const ManagerOptions& options);

  // Finds what an earlier server left: living sandboxes are taken over, records of dead ones
  // removed, living ones without a record ended. Call once, before serving.
  aio::Task<void> Recover();

  // Returns when the agent inside answers.
  aio::Task<std::shared_ptr<Sandbox>> Create(CreateRequest request);

  // kNotFound also for another tenant's.
  Result<std::shared_ptr<Sandbox>> Find(std::string_view tenant, std::string_view id);
  // Without asking whose it is: for the faces that prove themselves by the sandbox's own token.
  std::shared_ptr<Sandbox> FindAny(std::string_view id);
  std::vector<std::shared_ptr<Sandbox>> List(std::string_view tenant);
  // The one whose token signed it; kUnauthenticated when there is none.
  Result<std::shared_ptr<Sandbox>> FindBySignature(const FileSignature& claim);

  // The end is this long from now; may shorten. `extend_only` never shortens.
  enum class TimeoutChange : std::uint8_t { kSet, kExtendOnly };
  aio::Task<void> SetTimeout(std::shared_ptr<Sandbox> sandbox, std::chrono::seconds from_now,
                             TimeoutChange change);
  // Replaces what the sandbox's maker wished of the network, for connections from now on. What the
  // update cannot carry (allow_public_traffic, mask_request_host) stays. In the record before it
  // has an effect. kInvalidArgument for what E2B refuses.
  aio::Task<void> SetNetwork(std::shared_ptr<Sandbox> sandbox, NetworkWish wish);
  // Gone when it returns. `why` goes into the record.
  aio::Task<void> Kill(std::shared_ptr<Sandbox> sandbox, std::string why);

  // A request was turned away before it reached a sandbox.
  void RecordRefusal(std::string_view what, const Error& why);

  const runtime::Limits& limits() const { return options_.limits; }
  WallTime Now() { return parts_.clock.Now(); }

 private:
  Result<SandboxRecord> MakeRecord(const CreateRequest& request);
  aio::Task<std::shared_ptr<Sandbox>> StartNew(SandboxRecord record);
  aio::Task<std::shared_ptr<Sandbox>> Connect(SandboxRecord record,
                                              std::unique_ptr<runtime::SandboxHandle> handle,
                                              std::chrono::seconds patience);
  std::unique_ptr<EgressGate> MakeGate(const SandboxRecord& record, runtime::SandboxHandle& handle);
  aio::Task<void> SendInit(Sandbox& sandbox);
  void Adopt(const std::shared_ptr<Sandbox>& sandbox);
  // Takes it out of the map and cuts its link: from here on it is unknown.
  void Detach(Sandbox& sandbox);
  void Record(const SandboxRecord& record, bool start, std::string_view detail);
  std::chrono::seconds LeaseFor(const SandboxRecord& record);

  aio::Job StopGate(std::shared_ptr<Sandbox> sandbox);
  aio::Job EndUnanswered(std::string id);
  aio::Job WatchDeath(std::shared_ptr<Sandbox> sandbox);
  aio::Job WatchTimeout(std::shared_ptr<Sandbox> sandbox);
  aio::Task<void> RecoverOne(SandboxRecord record);

  ManagerParts parts_;
  ManagerOptions options_;
  std::map<std::string, std::shared_ptr<Sandbox>, std::less<>> sandboxes_;
  std::size_t starting_ = 0;
  aio::TaskGroup watchers_;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_MANAGER_H_
