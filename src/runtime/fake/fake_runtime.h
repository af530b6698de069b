// SPDX-License-Identifier: Apache-2.0
// FakeRuntime: runs the guest agent as a plain child process, without any wall. For tests of what
// is above the levels, nothing else: what runs "inside" is the caller itself.
#ifndef SOMA_RUNTIME_FAKE_FAKE_RUNTIME_H_
#define SOMA_RUNTIME_FAKE_FAKE_RUNTIME_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/result.h"
#include "runtime/runtime.h"

namespace soma::runtime {

class FakeProcess;

class FakeRuntime final : public Runtime {
 public:
  // `guest` is the path of soma-guest.
  FakeRuntime(aio::Loop& loop, std::string guest) : loop_(loop), guest_(std::move(guest)) {}

  std::string_view level() const override { return "none"; }
  Capabilities capabilities() const override { return {.lacks = {"every wall"}}; }
  aio::Task<std::unique_ptr<SandboxHandle>> Start(StartRequest request) override;
  // Those of this object: a child does not outlive its server here, nor its handle, so there is
  // never another one's, and nothing to attach to.
  aio::Task<std::vector<std::string>> List() override;
  aio::Task<std::unique_ptr<SandboxHandle>> Attach(std::string sandbox_id,
                                                   GuardToken token) override;
  aio::Task<void> StopUnknown(std::string sandbox_id) override;

 private:
  bool Lives(const std::string& sandbox_id);

  aio::Loop& loop_;
  std::string guest_;
  std::map<std::string, std::weak_ptr<FakeProcess>> processes_;
};

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_FAKE_FAKE_RUNTIME_H_
