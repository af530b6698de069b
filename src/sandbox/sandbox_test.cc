// SPDX-License-Identifier: Apache-2.0
// Records, signatures, and the manager over a runtime whose guests are sessions in this process.
#include "sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "runtime/guest_test_support.h"
#include "runtime/runtime.h"
#include "sandbox/egress_gate.h"  // IWYU pragma: keep: Sandbox owns one, and is destroyed here
#include "sandbox/manager.h"
#include "sandbox/record.h"
#include "sandbox/sandbox_store.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/real_clock.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::sandbox {
namespace {

using std::chrono::seconds;

aio::Job AgreeToEverything(wire::Session& session, const wire::SessionEvent& event) {
  if (event.opens) (void)session.Reply(event.channel, wire::Ok{});
  co_return;
}

// Sandboxes in memory; they outlive a manager as real ones do.
class MemoryRuntime final : public runtime::Runtime {
 public:
  explicit MemoryRuntime(aio::Loop& loop) : loop(loop) {}

  class Handle final : public runtime::SandboxHandle {
   public:
    Handle(MemoryRuntime& owner, std::string id, Fd wire)
        : owner_(owner), id_(std::move(id)), wire_(std::move(wire)) {}
    Result<Fd> TakeWire() override { return std::move(wire_); }
    runtime::CaptureSockets TakeCaptures() override { return {}; }
    aio::Task<runtime::Death> WaitDeath(std::chrono::nanoseconds timeout) override {
      while (owner_.living.contains(id_)) {
        if (!co_await owner_.changed.Wait(timeout)) {
          co_return Fail(Errc::kDeadlineExceeded, "lives");
        }
      }
      co_return runtime::Death{.reason = "died"};
    }
    aio::Task<void> RenewLease(seconds from_now) override {
      owner_.leases[id_] = from_now;
      co_return Status();
    }
    aio::Task<void> Freeze() override { co_return Status(); }
    aio::Task<void> Thaw() override { co_return Status(); }
    aio::Task<void> Snapshot(std::string /*name*/) override { co_return Status(); }
    aio::Task<void> Stop() override {
      owner_.End(id_);
      co_return Status();
    }
    aio::Task<runtime::Stats> GetStats() override { co_return runtime::Stats{}; }

   private:
    MemoryRuntime& owner_;
    std::string id_;
    Fd wire_;
  };

  std::string_view level() const override { return "memory"; }
  runtime::Capabilities capabilities() const override { return {}; }
  aio::Task<std::unique_ptr<runtime::SandboxHandle>> Start(runtime::StartRequest request) override {
    if (request.template_id != "base") co_return Fail(Errc::kNotFound, "no such template");
    living[request.sandbox_id] = request.token;
    if (loses_answers) co_return Fail(Errc::kUnavailable, "the launcher is gone");
    leases[request.sandbox_id] = request.lease;
    co_return co_await Attach(request.sandbox_id, request.token);
  }
  aio::Task<std::vector<std::string>> List() override {
    std::vector<std::string> ids;
    for (const auto& [id, token] : living) ids.push_back(id);
    co_return ids;
  }
  aio::Task<std::unique_ptr<runtime::SandboxHandle>> Attach(std::string id,
                                                            runtime::GuardToken token) override {
    if (living.at(id) != token) co_return Fail(Errc::kPermissionDenied, "wrong token");
    auto pair = sys::MakeSocketPair(SOCK_STREAM | SOCK_NONBLOCK);
    if (answers)
      loop.SpawnRoot(runtime::ServeGuest(loop, std::move(pair->second), AgreeToEverything));
    co_return std::make_unique<Handle>(*this, id, std::move(pair->first));
  }
  aio::Task<void> StopUnknown(std::string id) override {
    if (stops_fail > 0) {
      --stops_fail;
      co_return Fail(Errc::kUnavailable, "the launcher is gone");
    }
    End(id);
    co_return Status();
  }
  void End(const std::string& id) {
    living.erase(id);
    changed.NotifyAll();
  }

  aio::Loop& loop;
  std::map<std::string, runtime::GuardToken> living;
  std::map<std::string, seconds> leases;
  bool answers = true;         // whether guests do; else their wire ends at once
  bool loses_answers = false;  // whoever starts dies between that and the answer
  int stops_fail = 0;          // so many calls of StopUnknown find nobody there
  aio::Condition changed{loop};
};

// NOLINTBEGIN(cppcoreguidelines-avoid-capturing-lambda-coroutines): Run keeps the lambda, and so
// its captures, until the coroutine has ended.
class ManagerTest : public testing::Test {
 protected:
  std::unique_ptr<SandboxManager> NewManager() {
    return std::make_unique<SandboxManager>(ManagerParts{.loop = loop,
                                                         .clock = clock,
                                                         .random = random,
                                                         .runtime = runtime,
                                                         .store = store,
                                                         .recorder = recorder},
                                            ManagerOptions{.sandboxes_max = 2});
  }

  // Runs one job to its end.
  template <typename Function>
  void Run(Function function) {
    loop.SpawnRoot([](aio::Loop& on, Function body) -> aio::Job {
      co_await body();
      on.Stop();
    }(loop, std::move(function)));
    loop.Run();
    loop.Restart();
  }

  static CreateRequest Request(const std::string& tenant) {
    CreateRequest request;
    request.tenant = tenant;
    request.template_name = "base";
    return request;
  }

  aio::Loop loop;
  sys::RealClock clock;
  sys::RealRandom random;
  MemoryRuntime runtime{loop};
  MemorySandboxStore store;
  audit::MemoryRecorder recorder;
  std::unique_ptr<SandboxManager> manager = NewManager();
};

TEST_F(ManagerTest, AStartWhoseAnswerIsLostIsEnded) {
  runtime.loses_answers = true;
  runtime.stops_fail = 2;
  Run([&]() -> aio::Job {
    const auto made = co_await manager->Create(Request("me"));
    EXPECT_FALSE(made);
    EXPECT_EQ(runtime.living.size(), 1U);
    while (!runtime.living.empty()) EXPECT_TRUE(co_await runtime.changed.Wait(seconds(60)));
  });
  EXPECT_TRUE(store.records.empty());
}

TEST_F(ManagerTest, ASandboxIsStoredWhileItLivesAndUnknownToOthers) {
  std::string id;
  Run([&]() -> aio::Job {
    const auto made = co_await manager->Create(Request("me"));
    EXPECT_TRUE(made);
    if (!made) co_return;
    id = (*made)->record().id;
    EXPECT_TRUE(store.records.contains(id));
    EXPECT_TRUE(manager->Find("me", id));
    EXPECT_EQ(manager->Find("other", id).error().code(), Errc::kNotFound);
    EXPECT_TRUE(manager->List("other").empty());
    // The lease reaches a little beyond the end time: it is for when no server lives.
    EXPECT_GT(runtime.leases[id], seconds(300));
    EXPECT_LT(runtime.leases[id], seconds(310));
    EXPECT_TRUE(co_await manager->Kill(*made, "test"));
  });
  EXPECT_TRUE(store.records.empty());
  EXPECT_TRUE(runtime.living.empty());
  ASSERT_EQ(recorder.events.size(), 2U);
  EXPECT_EQ(recorder.events[0].kind, audit::EventKind::kStart);
  EXPECT_EQ(recorder.events[1].kind, audit::EventKind::kEnd);
  EXPECT_EQ(recorder.events[1].sandbox, id);
}

TEST_F(ManagerTest, AFailedStartLeavesNothing) {
  Run([&]() -> aio::Job {
    CreateRequest request = Request("me");
    request.template_name = "nonsense";
    EXPECT_EQ((co_await manager->Create(request)).error().code(), Errc::kNotFound);
    runtime.answers = false;
    EXPECT_FALSE(co_await manager->Create(Request("me")));
  });
  EXPECT_TRUE(store.records.empty());
  EXPECT_TRUE(runtime.living.empty());
  EXPECT_EQ(recorder.events.back().kind, audit::EventKind::kEnd);
}

TEST_F(ManagerTest, BoundsTheirNumberAndTimeout) {
  Run([&]() -> aio::Job {
    CreateRequest request = Request("me");
    request.timeout = std::chrono::hours(25);
    EXPECT_EQ((co_await manager->Create(request)).error().code(), Errc::kInvalidArgument);
    EXPECT_TRUE(co_await manager->Create(Request("a")));
    EXPECT_TRUE(co_await manager->Create(Request("b")));
    EXPECT_EQ((co_await manager->Create(Request("c"))).error().code(), Errc::kResourceExhausted);
  });
}

TEST_F(ManagerTest, TheNextServerFindsTheLivingAndForgetsTheDead) {
  std::string lives;
  std::string dead;
  Run([&]() -> aio::Job {
    lives = (*co_await manager->Create(Request("me")))->record().id;
    dead = (*co_await manager->Create(Request("me")))->record().id;
  });
  // This server dies without a word; meanwhile one sandbox ends, and one is there that nobody
  // knows.
  const auto stored = store.records;
  // A killed process destroys nothing. Still pointed at, because LeakSanitizer could not know.
  [[maybe_unused]] static const SandboxManager* const killed = manager.release();
  runtime.living.erase(dead);
  runtime.living["iunknown"] = {};
  store.records = stored;
  manager = NewManager();
  Run([&]() -> aio::Job { EXPECT_TRUE(co_await manager->Recover()); });
  EXPECT_TRUE(manager->Find("me", lives));
  EXPECT_FALSE(manager->Find("me", dead));
  EXPECT_FALSE(store.records.contains(dead));
  EXPECT_FALSE(runtime.living.contains("iunknown"));
}

TEST_F(ManagerTest, ASandboxThatDiesIsForgotten) {
  Run([&]() -> aio::Job {
    const auto made = co_await manager->Create(Request("me"));
    runtime.End((*made)->record().id);
    while (!store.records.empty()) co_await aio::Sleep(loop, std::chrono::milliseconds(1));
    EXPECT_FALSE((*made)->alive());
    EXPECT_FALSE(manager->Find("me", (*made)->record().id));
  });
}

TEST_F(ManagerTest, ConnectNeverShortens) {
  Run([&]() -> aio::Job {
    const auto made = *co_await manager->Create(Request("me"));
    const WallTime before = made->record().end_at;
    using Change = SandboxManager::TimeoutChange;
    EXPECT_TRUE(co_await manager->SetTimeout(made, seconds(5), Change::kExtendOnly));
    EXPECT_EQ(made->record().end_at, before);
    EXPECT_TRUE(co_await manager->SetTimeout(made, seconds(5), Change::kSet));
    EXPECT_LT(made->record().end_at, before);
    EXPECT_EQ(store.records.begin()->second.end_at, made->record().end_at);
    EXPECT_LT(runtime.leases.begin()->second, seconds(15));
  });
}

// NOLINTEND(cppcoreguidelines-avoid-capturing-lambda-coroutines)

TEST(SandboxRecord, SurvivesItsText) {
  SandboxRecord record;
  record.id = "i1";
  record.tenant = "t";
  record.metadata = {{"k 1", "v&2"}};
  record.network.allow_internet = false;
  record.network.allow_out = {"a.b"};
  record.link_secret[3] = 7;
  record.guard_token[31] = 9;
  record.end_at = WallTime(std::chrono::microseconds(123'456'789));
  const auto again = DecodeRecord(EncodeRecord(record));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(EncodeRecord(*again), EncodeRecord(record));
  EXPECT_EQ(again->guard_token, record.guard_token);
  EXPECT_FALSE(DecodeRecord("{}"));
  EXPECT_FALSE(DecodeRecord("nonsense"));
}

// The vector of E2B's own tests (e2b.md section 3.5).
TEST(Signature, KnowsE2BsVector) {
  aio::Loop loop;
  SandboxRecord record;
  record.envd_token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
  const Sandbox sandbox(loop, record, nullptr, nullptr, nullptr);
  FileSignature claim{.path = "hello.txt",
                      .operation = "read",
                      .user = "user",
                      .signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
                      .expiry = std::nullopt};
  EXPECT_TRUE(sandbox.CheckSignature(claim, WallTime()));
  claim.operation = "write";
  EXPECT_FALSE(sandbox.CheckSignature(claim, WallTime()));
}

}  // namespace
}  // namespace soma::sandbox
