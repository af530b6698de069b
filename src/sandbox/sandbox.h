// SPDX-License-Identifier: Apache-2.0
// Sandbox: one living sandbox as the faces of the API use it. Held by shared_ptr: a request that is
// under way when the sandbox is killed keeps the object, and finds its link dead.
#ifndef SOMA_SANDBOX_SANDBOX_H_
#define SOMA_SANDBOX_SANDBOX_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "aio/condition.h"
#include "aio/loop.h"
#include "base/clock.h"
#include "base/result.h"
#include "runtime/guest_link.h"
#include "runtime/runtime.h"
#include "sandbox/record.h"

namespace soma::sandbox {

// A signed file URL's claim (E2B: "v1_" + unpadded base64 of sha256("path:operation:user:token
// [:expiry]")).
struct FileSignature {
  std::string path;
  std::string operation;  // "read" or "write"
  std::string user;
  std::string signature;
  std::optional<std::string> expiry;  // unix seconds, as sent
};

class EgressGate;

class Sandbox {
 public:
  // `gate` may be null: then nothing gets out.
  Sandbox(aio::Loop& loop, SandboxRecord record, std::unique_ptr<runtime::SandboxHandle> handle,
          std::unique_ptr<EgressGate> gate, std::unique_ptr<runtime::GuestLink> link);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  const SandboxRecord& record() const { return record_; }
  runtime::GuestLink& link() { return *link_; }
  runtime::SandboxHandle& handle() { return *handle_; }
  // False from the moment on that it is being ended.
  bool alive() const { return alive_ && link_->alive(); }

  // In constant time. An empty token of the record matches everything.
  bool EnvdTokenMatches(std::string_view token) const;
  bool TrafficTokenMatches(std::string_view token) const;
  // kUnauthenticated with E2B's exact messages when the signature is wrong or over.
  Status CheckSignature(const FileSignature& claim, WallTime now) const;

 private:
  friend class SandboxManager;

  SandboxRecord record_;
  std::unique_ptr<runtime::SandboxHandle> handle_;
  // Before the link, which calls it.
  std::unique_ptr<EgressGate> gate_;
  std::unique_ptr<runtime::GuestLink> link_;
  bool alive_ = true;
  aio::Condition deadline_changed_;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_SANDBOX_H_
