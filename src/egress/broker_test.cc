// SPDX-License-Identifier: Apache-2.0
#include "egress/broker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "egress/name_table.h"
#include "egress/resolver.h"
#include "egress/socket_address.h"
#include "policy/address.h"
#include "policy/load.h"
#include "policy/model.h"
#include "sys/fd.h"

namespace soma::egress {
namespace {

policy::Policy PolicyOf(const std::string& network) {
  const policy::Source source{.kind = policy::LayerKind::kUser,
                              .format = policy::Format::kToml,
                              .name = "test.toml",
                              .text = "[network]\n" + network};
  auto loaded = policy::Load({.home = "/home/u", .workspace = "/w"}, {&source, 1}, {});
  EXPECT_TRUE(loaded) << loaded.error().message();
  return loaded ? *std::move(loaded) : policy::Policy{};
}

policy::IpAddress Ip(const char* text) { return *policy::ParseIpAddress(text); }

class FailingRecorder final : public audit::Recorder {
 public:
  Status Record(const audit::Event&, audit::Durability) override {
    return Fail(Errc::kResourceExhausted, "the disk is full");
  }
};

class BrokerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto socket = aio::ListenTcp("127.0.0.1", 0);
    ASSERT_TRUE(socket);
    listener = *std::move(socket);
    port = *aio::LocalPort(listener);
  }

  std::unique_ptr<Broker> Make(const std::string& network) {
    return std::make_unique<Broker>(
        Services{.loop = loop, .workers = workers, .recorder = *recorder, .resolver = resolver},
        PolicyOf(network), Identity{.run = "r"});
  }

  // One after the other, in one run of the loop: it can't be run a second time.
  using Call = std::function<aio::Task<Fd>()>;
  std::vector<Result<Fd>> RunEach(std::vector<Call> calls) {
    std::vector<Result<Fd>> results;
    loop.SpawnRoot(AwaitEach(std::move(calls), results));
    loop.Run();
    return results;
  }
  aio::Job AwaitEach(std::vector<Call> calls, std::vector<Result<Fd>>& results) {
    for (const Call& call : calls) results.push_back(co_await call());
    loop.Stop();
  }
  Result<Fd> Run(aio::Task<Fd> task) {
    auto only = std::make_shared<aio::Task<Fd>>(std::move(task));
    return std::move(RunEach({[only] { return std::move(*only); }}).front());
  }

  std::string Port() const { return std::to_string(port); }
  std::string Loopback() const { return "allow = [\"svc.test\", \"127.0.0.0/8\"]\n"; }

  audit::MemoryRecorder memory;
  audit::Recorder* recorder = &memory;
  aio::Loop loop;
  aio::WorkerPool workers{2};
  HostsResolver resolver{{{"svc.test", {Ip("127.0.0.1")}},
                          {"meta.test", {Ip("169.254.169.254")}},
                          {"mapped.test", {Ip("64:ff9b::7f00:1")}},
                          {"mixed.test", {Ip("10.0.0.1"), Ip("127.0.0.1")}}}};
  Fd listener;
  std::uint16_t port = 0;
};

TEST_F(BrokerTest, AnAllowedNameIsDialledAndRecorded) {
  const auto broker = Make(Loopback());
  const auto connection = Run(broker->OpenName("svc.test", port));
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(LocalEndpoint(*connection)->address, Ip("127.0.0.1"));
  ASSERT_EQ(memory.events.size(), 1U);
  const audit::Event& event = memory.events[0];
  EXPECT_EQ(event.kind, audit::EventKind::kEgressDecision);
  EXPECT_EQ(event.verdict, audit::Verdict::kAllow);
  EXPECT_EQ(event.object, "svc.test:" + Port());
  EXPECT_EQ(event.run, "r");
}

TEST_F(BrokerTest, AnUnnamedThingIsRefusedWithRuleAndRemedy) {
  const auto broker = Make("allow = [\"other.test\"]\n");
  const auto refused = Run(broker->OpenName("svc.test", port));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::kPermissionDenied);
  EXPECT_NE(refused.error().message().find("to allow it: "), std::string::npos);
  ASSERT_EQ(memory.events.size(), 1U);
  EXPECT_EQ(memory.events[0].verdict, audit::Verdict::kDeny);
  EXPECT_FALSE(memory.events[0].remedy.empty());
}

// A name that is allowed does not open a way to this machine, to the metadata
// service, or there by another spelling (DNS rebinding): the addresses
// themselves have to be named.
TEST_F(BrokerTest, AnAllowedNameThatLeadsInsideIsRefused) {
  const auto broker = Make("allow = [\"*.test\"]\n");
  std::vector<Call> calls;
  for (const char* name : {"svc.test", "meta.test", "mapped.test"}) {
    calls.emplace_back([&, name] { return broker->OpenName(name, port); });
  }
  const auto results = RunEach(calls);
  for (const auto& refused : results) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::kPermissionDenied);
  }
}

TEST_F(BrokerTest, OnlyTheAllowedAddressesOfANameAreDialled) {
  const auto broker = Make("allow = [\"mixed.test\", \"127.0.0.0/8\"]\n");
  const auto connection = Run(broker->OpenName("mixed.test", port));
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ(memory.events[0].fields.back().second, "127.0.0.1");
}

TEST_F(BrokerTest, DenyBeatsAllow) {
  const auto broker = Make("allow = [\"svc.test\", \"127.0.0.0/8\"]\ndeny = [\"127.0.0.1\"]\n");
  EXPECT_EQ(Run(broker->OpenName("svc.test", port)).error().code(), Errc::kPermissionDenied);
}

TEST_F(BrokerTest, WhatCannotBeRecordedDoesNotHappen) {
  FailingRecorder failing;
  recorder = &failing;
  const auto broker = Make(Loopback());
  const auto refused = Run(broker->OpenName("svc.test", port));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the disk is full");
}

TEST_F(BrokerTest, AChangedPolicyHoldsForTheNextRequest) {
  const auto broker = Make(Loopback());
  const Call open = [&] { return broker->OpenName("svc.test", port); };
  const Call change_and_open = [&] {
    broker->SetPolicy(PolicyOf("allow = [\"other.test\"]\n"));
    return open();
  };
  const auto results = RunEach({open, change_and_open});
  EXPECT_TRUE(results[0]);
  EXPECT_FALSE(results[1]);
}

// Answers nobody until it is let.
class HangingResolver final : public Resolver {
 public:
  explicit HangingResolver(aio::Loop& loop) : changed_(loop) {}
  aio::Task<std::vector<policy::IpAddress>> Resolve(std::string /*name*/) override {
    asked_max = std::max(asked_max, ++asked);
    while (!answers) co_await changed_.Wait(std::chrono::seconds(60));
    --asked;
    co_return std::vector<policy::IpAddress>{Ip("127.0.0.1")};
  }
  void Answer() {
    answers = true;
    changed_.NotifyAll();
  }
  std::size_t asked = 0;
  std::size_t asked_max = 0;
  bool answers = false;

 private:
  aio::Condition changed_;
};

TEST_F(BrokerTest, NamesThatHangKeepOnlySoManyThreadsAndNoAddress) {
  HangingResolver hanging(loop);
  Broker broker({.loop = loop, .workers = workers, .recorder = *recorder, .resolver = hanging},
                PolicyOf(Loopback()), Identity{.run = "r"});
  constexpr int kNames = 5;
  int opened = 0;
  bool address_opened = false;
  aio::TaskGroup calls(loop);
  // NOLINTBEGIN(cppcoreguidelines-avoid-capturing-lambda-coroutines): they outlive the loop.
  const auto open_name = [&]() -> aio::Job {
    if (co_await broker.OpenName("svc.test", port)) ++opened;
    if (opened == kNames) loop.Stop();
  };
  const auto open_address = [&]() -> aio::Job {
    address_opened = (co_await broker.OpenAddress({Ip("127.0.0.1"), port})).has_value();
    EXPECT_EQ(hanging.asked, 2U);
    hanging.Answer();
  };
  // NOLINTEND(cppcoreguidelines-avoid-capturing-lambda-coroutines)
  for (int i = 0; i < kNames; ++i) calls.Spawn(open_name());
  calls.Spawn(open_address());
  loop.Run();
  EXPECT_TRUE(address_opened);
  EXPECT_EQ(opened, kNames);
  EXPECT_EQ(hanging.asked_max, 2U);
}

Bytes Query(const std::string& wire_name, std::uint8_t type) {
  Bytes out = {1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  out.insert(out.end(), wire_name.begin(), wire_name.end());
  out.insert(out.end(), {0, 0, type, 0, 1});
  return out;
}

TEST_F(BrokerTest, ASyntheticAddressStandsForItsName) {
  const auto broker = Make(Loopback());
  const Bytes answer = broker->Answer(Query("\3sVc\4test", 1));
  ASSERT_GE(answer.size(), 4U);
  EXPECT_EQ(answer[3] & 0x0f, 0);
  std::uint32_t address = 0;
  for (std::size_t i = answer.size() - 4; i < answer.size(); ++i)
    address = address << 8 | answer[i];
  ASSERT_TRUE(NameTable::IsSynthetic(address));
  // The second one was given to nobody.
  const auto results =
      RunEach({[&] { return broker->OpenAddress({policy::IpAddress::V4(address), port}); },
               [&] { return broker->OpenAddress({policy::IpAddress::V4(address + 1), port}); }});
  ASSERT_TRUE(results[0]) << results[0].error().message();
  EXPECT_EQ(memory.events.front().object, "svc.test:" + Port());
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code(), Errc::kPermissionDenied);
}

TEST_F(BrokerTest, ANameThatNoRuleCouldAllowDoesNotExist) {
  const auto broker = Make(Loopback());
  const Bytes answer = broker->Answer(Query("\6secret\4evil\4test", 1));
  EXPECT_EQ(answer[3] & 0x0f, 3);
  ASSERT_EQ(memory.events.size(), 1U);
  EXPECT_EQ(memory.events[0].object, "secret.evil.test");
  // The other types of an allowed name: no error, no data.
  const Bytes other = broker->Answer(Query("\3svc\4test", 28));
  EXPECT_EQ(other[3] & 0x0f, 0);
  EXPECT_EQ(other[7], 0);
}

TEST_F(BrokerTest, ALoopOfRefusalsDoesNotFillTheRecord) {
  const auto broker = Make(Loopback());
  for (int i = 0; i < 1000; ++i) (void)broker->Answer(Query("\4evil\4test", 1));
  EXPECT_EQ(memory.events.size(), 10U);  // 1, 2, 4, … 512
  EXPECT_EQ(memory.events.back().fields.back().second, "512");
}

TEST_F(BrokerTest, NorDoNamesThatAreNewEachTime) {
  const auto broker = Make(Loopback());
  for (int i = 0; i < 20'000; ++i) {
    const std::string label = StrCat("n", 10'000 + i);
    (void)broker->Answer(Query(StrCat("\6", label, "\4test"), 1));
  }
  EXPECT_LT(memory.events.size(), 1'100U);
}

TEST(ParseHosts, ReadsAddressesAndNames) {
  const auto table = ParseHosts("127.0.0.1 a.test b.test # local\n\n::1 a.test\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->at("a.test").size(), 2U);
  EXPECT_FALSE(ParseHosts("nonsense a.test"));
}

}  // namespace
}  // namespace soma::egress
