// SPDX-License-Identifier: Apache-2.0
#include "plan/task_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/load.h"
#include "policy/path_facts.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::plan {
namespace {

using policy::PathKind;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class TaskPlanTest : public testing::Test {
 protected:
  TaskPlanTest() {
    facts_.workspace = {.path = "/w",
                        .real = "/w",
                        .kind = PathKind::kDirectory,
                        .owner_uid = 1000,
                        .owner_gid = 100};
    facts_.rules = {facts_.workspace};
    machine_ = {.cgroup_writable = true, .landlock_abi = 7, .may_notify = true};
    caller_ = {.identity = {.uid = 1000, .gid = 100, .outside_uid = 1000, .outside_gid = 100},
               .umask = 027,
               .home = "/home/u"};
    command_ = {.arguments = {"true"},
                .environment = {"PATH=/bin", "SECRET=x", "LC_ALL=C", "HOME=/wrong", "=odd", "odd"},
                .working_directory = "/w"};
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
                          .cgroup_name = "soma-run-1"});
  }

  policy::Policy policy_;
  policy::PathFacts facts_;
  Caller caller_;
  Machine machine_;
  Command command_;
};

TEST_F(TaskPlanTest, HasEveryWall) {
  const auto plan = Build();
  ASSERT_TRUE(plan) << plan.error().message();
  const walls::WallPlan& walls = plan->walls;
  EXPECT_TRUE(Validate(walls)) << Validate(walls).error().message();
  EXPECT_EQ(walls.namespaces, walls::Namespaces::kAll);
  EXPECT_EQ(walls.user_namespaces.size(), 1U);
  EXPECT_EQ(walls.network, walls::NetworkKind::kLoopback);
  EXPECT_EQ(walls.capability_bounding, 0U);
  EXPECT_TRUE(walls.no_new_privs);
  EXPECT_TRUE(walls.landlock.enabled);
  EXPECT_FALSE(walls.landlock.rules.empty());
  EXPECT_TRUE(walls.seccomp.enabled);
  EXPECT_EQ(walls.seccomp.notify, walls::SeccompNotify::kMutating);
  EXPECT_THAT(walls.limits, Contains(walls::ResourceLimit{RLIMIT_CORE, 0}));
  EXPECT_TRUE(walls.notes.empty());
}

TEST_F(TaskPlanTest, AnOrdinaryUserKeepsTheOwnId) {
  const auto plan = Build();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->walls.uid, 1000U);
  EXPECT_EQ(plan->walls.user_namespaces[0].uids, (std::vector<walls::IdRange>{{1000, 1000, 1}}));
}

TEST_F(TaskPlanTest, RootsFilesAreMappedToTheIdThatNobodyHas) {
  constexpr std::uint32_t kNobodys = 1'900'000'007;
  caller_.identity = {.outside_uid = kNobodys,
                      .outside_gid = kNobodys,
                      .workspace_map = {{{1000, kNobodys, 1}}, {{100, kNobodys, 1}}}};
  const auto plan = Build();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->walls.user_namespaces[0].uids, (std::vector<walls::IdRange>{{0, kNobodys, 1}}));
  const auto workspace = std::ranges::find(plan->walls.mounts, "/w", &walls::MountItem::target);
  ASSERT_NE(workspace, plan->walls.mounts.end());
  EXPECT_EQ(workspace->id_map.uids, (std::vector<walls::IdRange>{{1000, kNobodys, 1}}));
  EXPECT_TRUE(Validate(plan->walls));
}

TEST_F(TaskPlanTest, TellsWhatTheIdentityIsWhenItIsNotTheBest) {
  caller_.identity.note = "the owner's id";
  EXPECT_THAT(Build()->walls.notes, Contains(HasSubstr("identity: the owner's id")));
}

TEST_F(TaskPlanTest, LimitsComeByCgroupOrByTheNamedRegime) {
  const std::string_view toml = "[limits]\nmemory = \"1G\"\npids = 9\ncpu = 1.5\n";
  const auto by_cgroup = Build(toml);
  ASSERT_TRUE(by_cgroup);
  EXPECT_EQ(by_cgroup->walls.cgroup.memory_bytes_max, 1U << 30);
  EXPECT_EQ(by_cgroup->walls.cgroup.pids_max, 9U);
  EXPECT_EQ(by_cgroup->walls.cgroup.cpu_percent_max, 150U);
  machine_.cgroup_writable = false;
  const auto by_rlimit = Build(toml);
  ASSERT_TRUE(by_rlimit);
  EXPECT_THAT(by_rlimit->walls.limits, Contains(walls::ResourceLimit{RLIMIT_NPROC, 9}));
  EXPECT_THAT(by_rlimit->walls.limits, Contains(walls::ResourceLimit{RLIMIT_DATA, 1U << 30}));
  EXPECT_THAT(by_rlimit->walls.notes, Contains(HasSubstr("limits: rlimit")));
}

TEST_F(TaskPlanTest, PassesOnlyAllowedVariables) {
  const auto plan = Build("[environment.set]\nA = \"1\"\n");
  ASSERT_TRUE(plan);
  const auto& environment = plan->walls.environment;
  EXPECT_THAT(environment, Contains("PATH=/bin"));
  EXPECT_THAT(environment, Contains("LC_ALL=C"));
  EXPECT_THAT(environment, Contains("A=1"));
  EXPECT_THAT(environment, Contains("HOME=/home/u"));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("SECRET"))));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("odd"))));
}

TEST_F(TaskPlanTest, WorksInTheWorkspaceWhereverItIsCalledFrom) {
  command_.working_directory = "/w/src";
  EXPECT_EQ(Build()->walls.working_directory, "/w/src");
  command_.working_directory = "/etc";
  EXPECT_EQ(Build()->walls.working_directory, "/w");
}

TEST_F(TaskPlanTest, RefusesWhatTheLevelCannotKeep) {
  EXPECT_THAT(Build("[task]\nprofile = \"rooted\"\n").error().message(), HasSubstr("u:2"));
  EXPECT_THAT(Build("[task]\nephemeral = true\n").error().message(), HasSubstr("live workspace"));
}

TEST_F(TaskPlanTest, SaysWhereAWallIsMissing) {
  machine_.landlock_abi = 0;
  machine_.may_notify = false;
  const auto plan = Build();
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->walls.notes, Contains(HasSubstr("landlock")));
  EXPECT_THAT(plan->walls.notes, Contains(HasSubstr("reports")));
}

}  // namespace
}  // namespace soma::plan
