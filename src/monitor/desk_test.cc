// SPDX-License-Identifier: Apache-2.0
#include "monitor/desk.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "control/messages.h"
#include "control/order.h"

namespace soma::monitor {
namespace {

using control::SandboxState;
using control::Verb;
using std::chrono::seconds;

constexpr std::uint32_t kServerUid = 500;
constexpr ConnectionId kFirst = 1;
constexpr ConnectionId kSecond = 2;
const MonotonicTime kStartTime{seconds(1000)};

control::Order TheOrder() {
  control::Order order;
  order.sandbox = *control::SandboxId::Create("abc");
  order.server_uid = kServerUid;
  order.launcher_uid = 0;
  order.lease_seconds = 10;
  order.token.fill(9);
  return order;
}

control::Request Ask(Verb verb) {
  control::Request request;
  request.verb = verb;
  request.sequence = 1;
  request.sandbox = *control::SandboxId::Create("abc");
  request.lease_seconds = 20;
  request.token.fill(9);
  return request;
}

class DeskTest : public testing::Test {
 protected:
  Answer From(ConnectionId connection, std::uint32_t uid, const control::Request& request) {
    return desk_.Handle({.connection = connection, .uid = uid}, request, kStartTime, std::nullopt);
  }
  Desk desk_{TheOrder(), kFirst, kStartTime};
};

TEST_F(DeskTest, LeaseExpiresOnceAndNamesItself) {
  EXPECT_FALSE(desk_.ExpireAt(kStartTime + seconds(9)));
  EXPECT_TRUE(desk_.ExpireAt(kStartTime + seconds(10)));
  EXPECT_FALSE(desk_.ExpireAt(kStartTime + seconds(11)));
  desk_.OnEnded(0, 9);
  EXPECT_EQ(desk_.StatusAt(kStartTime).state, SandboxState::kExpired);
}

TEST_F(DeskTest, RenewMovesTheEndButNotAfterIt) {
  EXPECT_TRUE(From(kFirst, kServerUid, Ask(Verb::kRenew)).reply.ok);
  EXPECT_FALSE(desk_.ExpireAt(kStartTime + seconds(19)));
  EXPECT_TRUE(desk_.ExpireAt(kStartTime + seconds(20)));
  EXPECT_EQ(From(kFirst, kServerUid, Ask(Verb::kRenew)).reply.code, Errc::kFailedPrecondition);
}

TEST_F(DeskTest, StrangersGetNothing) {
  for (const Verb verb : {Verb::kKill, Verb::kRenew, Verb::kStatus, Verb::kAttach}) {
    EXPECT_EQ(From(kSecond, 501, Ask(verb)).reply.code, Errc::kPermissionDenied);
  }
}

TEST_F(DeskTest, TheServerManagesOnlyWhileAttached) {
  EXPECT_FALSE(From(kSecond, kServerUid, Ask(Verb::kKill)).kill);
  EXPECT_TRUE(From(kFirst, kServerUid, Ask(Verb::kKill)).kill);
}

TEST_F(DeskTest, AttachNeedsTheTokenAndAFreeWire) {
  control::Request wrong = Ask(Verb::kAttach);
  wrong.token[31] = 0;
  EXPECT_EQ(From(kSecond, kServerUid, wrong).reply.code, Errc::kUnauthenticated);
  EXPECT_EQ(From(kSecond, kServerUid, Ask(Verb::kAttach)).reply.code, Errc::kFailedPrecondition);
  (void)desk_.OnClosed(kFirst);
  EXPECT_TRUE(From(kSecond, kServerUid, Ask(Verb::kAttach)).hand_out_wire);
}

TEST_F(DeskTest, TheLauncherAttachesOthersNeverItself) {
  (void)desk_.OnClosed(kFirst);
  EXPECT_FALSE(From(kLauncherLink, 0, Ask(Verb::kAttach)).reply.ok);
  EXPECT_TRUE(desk_.Handle({}, Ask(Verb::kAttach), kStartTime, kSecond).hand_out_wire);
  EXPECT_TRUE(From(kSecond, kServerUid, Ask(Verb::kStatus)).reply.ok);
}

TEST_F(DeskTest, WithATokenASandboxOutlivesItsServer) {
  EXPECT_FALSE(desk_.OnClosed(kFirst));
  EXPECT_FALSE(desk_.is_ending());
}

TEST_F(DeskTest, WithoutATokenItEndsWithItsOneConnection) {
  control::Order order = TheOrder();
  order.token = {};
  Desk desk(order, kFirst, kStartTime);
  control::Request attach = Ask(Verb::kAttach);
  attach.token = {};
  EXPECT_EQ(
      desk.Handle({.connection = kSecond, .uid = kServerUid}, attach, kStartTime, {}).reply.code,
      Errc::kUnauthenticated);
  EXPECT_FALSE(desk.OnClosed(kSecond));
  EXPECT_TRUE(desk.OnClosed(kFirst));
  EXPECT_TRUE(desk.is_ending());
  EXPECT_FALSE(desk.OnClosed(kFirst));
}

TEST_F(DeskTest, AnotherSandboxIsNotFound) {
  control::Request request = Ask(Verb::kKill);
  request.sandbox = *control::SandboxId::Create("abd");
  EXPECT_EQ(From(kFirst, kServerUid, request).reply.code, Errc::kNotFound);
}

TEST_F(DeskTest, AnExitByItselfKeepsItsCode) {
  desk_.OnEnded(3, 0);
  EXPECT_EQ(desk_.StatusAt(kStartTime).state, SandboxState::kExited);
  EXPECT_EQ(desk_.StatusAt(kStartTime).exit_code, 3);
}

}  // namespace
}  // namespace soma::monitor
