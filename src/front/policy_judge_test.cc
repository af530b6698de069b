// SPDX-License-Identifier: Apache-2.0
#include "front/policy_judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/view.h"
#include "policy/load.h"
#include "policy/model.h"
#include "walls/judge.h"

namespace soma::front {
namespace {

using testing::HasSubstr;
using walls::Request;
using walls::RequestKind;
using walls::RequestPath;
using walls::Verdict;

class PolicyJudgeTest : public testing::Test {
 protected:
  PolicyJudgeTest() {
    auto policy = policy::Load({.home = "/home/u", .workspace = "/w"}, {}, {});
    EXPECT_TRUE(policy);
    policy_ = *std::move(policy);
    view_.effective = policy_;
    view_.effective.filesystem.front().rules.push_back(
        {policy::PathVerdict::kWrite, "/tmp", {"private", 0}});
  }

  Verdict Ask(RequestKind kind, RequestPath path, RequestPath other = {}) {
    PolicyJudge judge(policy_, view_, has_broker_);
    return judge.Decide({.kind = kind, .path = std::move(path), .other = std::move(other)});
  }
  static RequestPath At(const std::string& path) {
    return {.asked = path, .absolute = path, .real = path, .exists = true};
  }
  Verdict Connect(int family, const std::string& host, std::uint16_t port) {
    PolicyJudge judge(policy_, view_, has_broker_);
    return judge.Decide(
        {.kind = RequestKind::kConnect, .address = {family, host, port, std::nullopt}});
  }

  policy::Policy policy_;
  plan::View view_;
  bool has_broker_ = false;
};

TEST_F(PolicyJudgeTest, WritesInTheWorkspaceAndOwnPlacesPass) {
  for (const char* path : {"/w/a", "/tmp/x", "/dev/null", "/proc/self/comm"}) {
    EXPECT_TRUE(Ask(RequestKind::kOpenWrite, At(path)).allowed) << path;
  }
}

TEST_F(PolicyJudgeTest, EveryKindOfWriteElsewhereIsRefusedWithItsRemedy) {
  for (const RequestKind kind :
       {RequestKind::kOpenWrite, RequestKind::kCreate, RequestKind::kSymlink, RequestKind::kRemove,
        RequestKind::kTruncate, RequestKind::kSetAttributes}) {
    const Verdict verdict = Ask(kind, At("/etc/x"));
    EXPECT_FALSE(verdict.allowed);
    EXPECT_EQ(verdict.errno_value, EACCES);
    EXPECT_THAT(verdict.rule, HasSubstr("built-in dev:"));
    EXPECT_THAT(verdict.remedy, HasSubstr("--write /etc/x"));
  }
}

TEST_F(PolicyJudgeTest, TheRealObjectCountsNotItsName) {
  EXPECT_FALSE(Ask(RequestKind::kOpenWrite,
                   {.asked = "link", .absolute = "/w/link", .real = "/etc/x", .exists = true})
                   .allowed);
}

TEST_F(PolicyJudgeTest, BothNamesOfALinkOrRenameMustBeWritable) {
  EXPECT_FALSE(Ask(RequestKind::kLink, At("/w/new"), At("/usr/bin/env")).allowed);
  EXPECT_FALSE(Ask(RequestKind::kRename, At("/etc/new"), At("/w/old")).allowed);
  EXPECT_TRUE(Ask(RequestKind::kRename, At("/w/new"), At("/w/old")).allowed);
}

TEST_F(PolicyJudgeTest, AnUnseenPathOfTheHostIsReportedWithTheAnswerThatItGetsAnyway) {
  const Verdict verdict = Ask(RequestKind::kOpenWrite, {.asked = "/usr/x", .absolute = "/usr/x"});
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.errno_value, ENOENT);
  EXPECT_TRUE(
      Ask(RequestKind::kOpenWrite, {.asked = "/no/such", .absolute = "/no/such/file"}).allowed);
}

TEST_F(PolicyJudgeTest, ConnectsAreRefusedButToOneself) {
  const Verdict verdict = Connect(AF_INET, "192.0.2.1", 80);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.errno_value, ECONNREFUSED);
  EXPECT_THAT(verdict.remedy, HasSubstr("--allow-net 192.0.2.1:80"));
  EXPECT_TRUE(Connect(AF_INET, "127.0.0.1", 8000).allowed);
  EXPECT_TRUE(Connect(AF_INET6, "::1", 8000).allowed);
  EXPECT_FALSE(Connect(AF_INET, "127.0.0.53", 53).allowed);
  EXPECT_TRUE(Connect(AF_UNIX, "@own", 0).allowed);
  has_broker_ = true;
  EXPECT_TRUE(Connect(AF_INET, "192.0.2.1", 80).allowed);
}

TEST_F(PolicyJudgeTest, SocketsOfOthersAreFilesThatMustBeWritable) {
  PolicyJudge judge(policy_, view_, false);
  EXPECT_FALSE(judge
                   .Decide({.kind = RequestKind::kConnect,
                            .address = {AF_UNIX, "", 0, At("/usr/lib/s.sock")}})
                   .allowed);
  EXPECT_TRUE(
      judge.Decide({.kind = RequestKind::kConnect, .address = {AF_UNIX, "", 0, At("/w/s.sock")}})
          .allowed);
  EXPECT_FALSE(
      judge.Decide({.kind = RequestKind::kBind, .address = {AF_UNIX, "", 0, At("/etc/s.sock")}})
          .allowed);
  EXPECT_TRUE(
      judge.Decide({.kind = RequestKind::kBind, .address = {AF_INET, "0.0.0.0", 80, std::nullopt}})
          .allowed);
}

TEST_F(PolicyJudgeTest, RefusesToMoveAFolderAboveWhatIsCovered) {
  view_.pinned = {{"/w/a", "/w/a/key", {.rule = "hide \"/w/a/key\"", .origin = {"u", 3}}}};
  for (const auto& [from, to] : {std::pair("/w/a", "/w/b"), std::pair("/w/b", "/w/a")}) {
    const Verdict verdict = Ask(RequestKind::kRename, At(to), At(from));
    EXPECT_EQ(verdict.errno_value, EBUSY);
    EXPECT_THAT(verdict.rule, HasSubstr("it would move /w/a/key: hide \"/w/a/key\" (u:3)"));
  }
  EXPECT_TRUE(Ask(RequestKind::kRename, At("/w/a/y"), At("/w/a/x")).allowed);
}

}  // namespace
}  // namespace soma::front
