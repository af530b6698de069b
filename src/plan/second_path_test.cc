// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "plan/task_plan.h"
#include "policy/load.h"
#include "policy/path_facts.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::plan {
namespace {

using policy::PathFact;
using policy::PathKind;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

PathFact Dir(const std::string& path) {
  return {.path = path, .real = path, .kind = PathKind::kDirectory};
}

class SecondPathTest : public testing::Test {
 protected:
  SecondPathTest() {
    facts_.workspace = Dir("/w");
    facts_.rules = {facts_.workspace, Dir("/usr")};
    machine_.landlock_abi = 2;
    machine_.namespaces = false;
    machine_.namespaces_lack = "clone namespaces: refused";
    caller_.identity = {.uid = 0, .gid = 0, .outside_uid = 1000, .outside_gid = 100};
    caller_.home = "/home/u";
    command_.arguments = {"true"};
    command_.working_directory = "/w";
  }

  Result<TaskPlan> Build(std::string_view toml = "") {
    const std::vector<policy::Source> sources = {
        {policy::LayerKind::kUser, policy::Format::kToml, "u", std::string(toml)}};
    auto policy = policy::Load({.home = "/home/u", .workspace = "/w"}, sources, {});
    EXPECT_TRUE(policy) << policy.error().message();
    policy_ = *std::move(policy);
    return BuildTaskPlan({.policy = policy_,
                          .facts = facts_,
                          .caller = caller_,
                          .machine = machine_,
                          .command = command_,
                          .cgroup_name = "soma-run-1",
                          .private_place = "/s/places/1"});
  }

  void ExpectRefused(std::string_view toml, const std::string& word) {
    const auto plan = Build(toml);
    ASSERT_FALSE(plan) << toml;
    EXPECT_EQ(plan.error().code(), Errc::kFailedPrecondition);
    EXPECT_THAT(plan.error().message(), HasSubstr(word));
    EXPECT_THAT(plan.error().message(), HasSubstr("clone namespaces: refused"));
  }

  policy::Policy policy_;
  policy::PathFacts facts_;
  Caller caller_;
  Machine machine_;
  Command command_;
};

std::vector<std::string> Below(const walls::WallPlan& walls, bool writable) {
  std::vector<std::string> out;
  for (const walls::LandlockRule& rule : walls.landlock.rules) {
    const bool writes = (rule.rights & 0x80) != 0;  // making directories
    if (writes == writable) out.push_back(rule.path);
  }
  return out;
}

TEST_F(SecondPathTest, HasTheWallsThatAreLeft) {
  const auto plan = Build();
  ASSERT_TRUE(plan) << plan.error().message();
  const walls::WallPlan& walls = plan->walls;
  EXPECT_TRUE(Validate(walls)) << Validate(walls).error().message();
  EXPECT_EQ(walls.namespaces, walls::Namespaces::kNone);
  EXPECT_TRUE(walls.user_namespaces.empty());
  EXPECT_EQ(walls.uid, 1000U);
  EXPECT_TRUE(walls.no_new_privs);
  EXPECT_EQ(walls.seccomp.profile, walls::SeccompProfile::kAlone);
  EXPECT_EQ(walls.seccomp.notify, walls::SeccompNotify::kMutating);
  EXPECT_THAT(Below(walls, true), testing::UnorderedElementsAre("/w", "/s/places/1"));
  EXPECT_THAT(Below(walls, false), Contains("/usr"));
  EXPECT_THAT(Below(walls, false), Not(Contains("/tmp")));
  EXPECT_THAT(walls.environment, Contains("TMPDIR=/s/places/1/tmp"));
  EXPECT_THAT(walls.environment, Contains("HOME=/s/places/1/home"));
}

TEST_F(SecondPathTest, SaysWhatIsMissing) {
  auto plan = Build();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->missing, Contains(HasSubstr("clone namespaces: refused")));
  EXPECT_THAT(plan->missing, Contains(HasSubstr("seen and signalled")));
  EXPECT_THAT(plan->missing, Not(Contains(HasSubstr("reports"))));
  EXPECT_THAT(plan->walls.notes, Contains(plan->missing.front()));
  machine_.landlock_abi = 6;
  machine_.may_notify = false;
  plan = Build();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->missing, Contains(HasSubstr("not signalled")));
  EXPECT_THAT(plan->missing, Contains(HasSubstr("reports")));
  EXPECT_EQ(plan->walls.seccomp.notify, walls::SeccompNotify::kNone);
}

TEST_F(SecondPathTest, RefusesWhatItCannotKeep) {
  ExpectRefused("[isolation]\nminimum = \"process\"", "u:2");
  ExpectRefused("[network]\nallow = [\"a.org:443\"]", "\"a.org:443\" (u:2)");
  ExpectRefused("[network]\ndefault = \"allow\"", "network default");
  facts_.rules.push_back(Dir("/w/keys"));
  ExpectRefused("[filesystem]\nhide = [\"/w/keys\"]", "hide \"/w/keys\" (u:2) below write \"/w\"");
  ExpectRefused("[filesystem]\nread = [\"/w/keys\"]", "read \"/w/keys\" (u:2) below write \"/w\"");
}

TEST_F(SecondPathTest, ALinkIsFollowedOnlyWhereNoRunCouldHaveMadeIt) {
  facts_.rules.push_back({.path = "/w/link",
                          .real = "/srv/data",
                          .kind = PathKind::kDirectory,
                          .link_text = "/srv/data"});
  const auto plan = Build("[filesystem]\nread = [\"/w/link\"]");
  // Whatever it points to now: nothing of it is given.
  if (plan) EXPECT_THAT(Below(plan->walls, false), Not(Contains("/srv/data")));
}

TEST_F(SecondPathTest, NeedsLandlock) {
  machine_.landlock_abi = 0;
  ExpectRefused("", "neither");
}

TEST_F(SecondPathTest, AHiddenPathThatNothingGivesIsNoContradiction) {
  facts_.rules.push_back(Dir("/home/u/.ssh"));
  const auto plan = Build();
  ASSERT_TRUE(plan) << plan.error().message();
  ASSERT_EQ(plan->view.hidden.size(), 1U);
  EXPECT_EQ(plan->view.hidden[0].path, "/home/u/.ssh");
}

}  // namespace
}  // namespace soma::plan
