// SPDX-License-Identifier: Apache-2.0
#include "tenant/keyring.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::tenant {
namespace {

class FixedClock final : public Clock {
 public:
  WallTime Now() override { return WallTime(std::chrono::seconds(1'764'440'521)); }
  MonotonicTime MonotonicNow() override { return {}; }
};

class CountingRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> out) override {
    for (std::uint8_t& byte : out) byte = next++;
  }
  std::uint8_t next = 1;
};

class RefusingRecorder final : public audit::Recorder {
 public:
  Status Record(const audit::Event&, audit::Durability) override {
    return Fail(Errc::kResourceExhausted, "the disk is full");
  }
};

class KeyringTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "soma-keys-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  Keyring Open(audit::Recorder& to) {
    auto keyring = Keyring::Open(root + "/keys.db", to, clock, random);
    EXPECT_TRUE(keyring) << keyring.error().message();
    return *std::move(keyring);
  }

  std::string root;
  FixedClock clock;
  CountingRandom random;
  audit::MemoryRecorder recorder;
};

TEST_F(KeyringTest, AKeyHasTheSdksShapeAndLeadsToItsTenant) {
  Keyring keyring = Open(recorder);
  const auto made = keyring.CreateKey({"acme"}, "ci");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->key, "e2b_0102030405060708090a0b0c0d0e0f1011121314");
  EXPECT_EQ(made->info.hint, "e2b_0102");
  EXPECT_EQ(keyring.Authenticate(made->key), TenantId{"acme"});
}

TEST_F(KeyringTest, EverythingElseIsRefusedWithTheSameWords) {
  Keyring keyring = Open(recorder);
  const std::string key = keyring.CreateKey({"acme"}, "")->key;
  std::string other = key;
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& wrong :
       {std::string(), std::string("e2b_"), other, key + "0", key.substr(1), " " + key,
        "E2B_" + key.substr(4), key.substr(0, 43) + "'", std::string(1 << 20, 'a')}) {
    const auto tenant = keyring.Authenticate(wrong);
    ASSERT_FALSE(tenant);
    EXPECT_EQ(tenant.error().code(), Errc::kUnauthenticated);
    EXPECT_EQ(tenant.error().message(), "the API key is not valid");
  }
}

TEST_F(KeyringTest, ARevokedKeyOpensNothing) {
  Keyring keyring = Open(recorder);
  const auto made = keyring.CreateKey({"acme"}, "");
  const auto kept = keyring.CreateKey({"acme"}, "");
  ASSERT_TRUE(keyring.RevokeKey(made->info.id));
  EXPECT_TRUE(keyring.RevokeKey(made->info.id));
  EXPECT_FALSE(keyring.Authenticate(made->key));
  EXPECT_TRUE(keyring.Authenticate(kept->key));
  EXPECT_EQ(keyring.RevokeKey("nothing").error().code(), Errc::kNotFound);
  const auto keys = keyring.ListKeys();
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_TRUE(keys->at(0).revoked.has_value());
}

TEST_F(KeyringTest, TheKeyIsNowhereInTheFile) {
  std::string key;
  {
    Keyring keyring = Open(recorder);
    key = keyring.CreateKey({"acme"}, "")->key;
  }
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(content.find(key), std::string::npos) << entry.path();
    EXPECT_EQ(content.find(key.substr(4)), std::string::npos) << entry.path();
  }
}

TEST_F(KeyringTest, EveryChangeIsRecorded) {
  Keyring keyring = Open(recorder);
  const auto made = keyring.CreateKey({"acme"}, "");
  ASSERT_TRUE(keyring.CreateKey({"acme"}, ""));
  ASSERT_TRUE(keyring.RevokeKey(made->info.id));
  ASSERT_EQ(recorder.events.size(), 4U);
  EXPECT_EQ(recorder.events[0].subject, "tenant created");
  EXPECT_EQ(recorder.events[1].subject, "key created");
  EXPECT_EQ(recorder.events[3].subject, "key revoked");
  EXPECT_EQ(recorder.events[3].object, made->info.id);
  for (const audit::Event& event : recorder.events) {
    EXPECT_EQ(audit::EncodeEvent(event).find(made->key), std::string::npos);
  }
}

// Without a record there is no key, and a key that can't be recorded as revoked stays.
TEST_F(KeyringTest, NoChangeWithoutARecord) {
  std::string key;
  std::string id;
  {
    Keyring keyring = Open(recorder);
    const auto made = keyring.CreateKey({"acme"}, "");
    key = made->key;
    id = made->info.id;
  }
  RefusingRecorder refusing;
  Keyring keyring = Open(refusing);
  EXPECT_FALSE(keyring.CreateKey({"other"}, ""));
  EXPECT_FALSE(keyring.RevokeKey(id));
  EXPECT_TRUE(keyring.Authenticate(key));
  EXPECT_EQ(keyring.ListKeys()->size(), 1U);
}

TEST_F(KeyringTest, RefusesBadNames) {
  Keyring keyring = Open(recorder);
  for (const char* name : {"", "-a", "A", "a b", "a/b", "a\n"}) {
    EXPECT_FALSE(keyring.CreateKey({name}, "")) << name;
  }
  EXPECT_FALSE(keyring.CreateKey({"a"}, std::string(65, 'x')));
  EXPECT_FALSE(keyring.CreateKey({"a"}, "\xff"));
}

}  // namespace
}  // namespace soma::tenant
