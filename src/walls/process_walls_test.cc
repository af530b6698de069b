// SPDX-License-Identifier: Apache-2.0
#include "walls/process_walls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "walls/plan.h"

namespace soma::walls {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ProcessWallsInput Input() {
  ProcessWallsInput input;
  input.identity = {.uid = 1000, .gid = 1000, .outside_uid = 1000, .outside_gid = 1000};
  input.system = {{"/bin", "usr/bin"}, {"/usr", ""}, {"/var", ""}};
  input.home = "/home/u";
  input.workspace = "/home/u/project";
  input.working_directory = "/home/u/project";
  input.arguments = {"true"};
  return input;
}

std::size_t IndexOf(const WallPlan& plan, std::string_view target) {
  const auto at = std::ranges::find(plan.mounts, target, &MountItem::target);
  return static_cast<std::size_t>(at - plan.mounts.begin());
}
const MountItem& ItemAt(const WallPlan& plan, std::string_view target) {
  return plan.mounts.at(IndexOf(plan, target));
}

TEST(ProcessWalls, IsValidWithAndWithoutNamespaces) {
  const auto plan = Validate(ProcessWalls(Input()));
  EXPECT_TRUE(plan) << plan.error().message();
  ProcessWallsInput input = Input();
  input.network = NetworkKind::kHost;
  const auto second = Validate(ProcessWallsWithoutNamespaces(input));
  EXPECT_TRUE(second) << second.error().message();
}

TEST(ProcessWalls, HidesHomeBehindAnEmptyOneAndBindsTheWorkspaceIntoIt) {
  const WallPlan plan = ProcessWalls(Input());
  EXPECT_EQ(ItemAt(plan, "/home/u").kind, MountKind::kTmpfs);
  EXPECT_EQ(ItemAt(plan, "/home/u/project").kind, MountKind::kBind);
  EXPECT_FALSE(ItemAt(plan, "/home/u/project").read_only);
  EXPECT_LT(IndexOf(plan, "/home/u"), IndexOf(plan, "/home/u/project"));
  EXPECT_TRUE(ItemAt(plan, "/usr").read_only);
  EXPECT_TRUE(ItemAt(plan, "/").read_only);
}

TEST(ProcessWalls, TheWritableWishForAPathCounts) {
  ProcessWallsInput input = Input();
  input.readable = {"/data", "/home/u/project"};
  input.writable = {"/data"};
  const WallPlan plan = ProcessWalls(input);
  EXPECT_FALSE(ItemAt(plan, "/data").read_only);
  EXPECT_FALSE(ItemAt(plan, "/home/u/project").read_only);
  EXPECT_TRUE(Validate(plan));
}

TEST(ProcessWalls, OrdersBindsSoThatNoneCoversAnother) {
  ProcessWallsInput input = Input();
  input.readable = {"/a/b/c", "/a/b"};
  input.writable = {"/a"};
  const WallPlan plan = ProcessWalls(input);
  EXPECT_LT(IndexOf(plan, "/a"), IndexOf(plan, "/a/b"));
  EXPECT_LT(IndexOf(plan, "/a/b"), IndexOf(plan, "/a/b/c"));
  EXPECT_TRUE(Validate(plan));
}

TEST(ProcessWalls, HidesLast) {
  ProcessWallsInput input = Input();
  input.hidden = {"/home/u/project/.env"};
  const WallPlan plan = ProcessWalls(input);
  EXPECT_EQ(plan.mounts.back().kind, MountKind::kHide);
  EXPECT_TRUE(plan.mounts.back().optional);
}

TEST(ProcessWalls, GivesNoPrivilege) {
  const WallPlan plan = ProcessWalls(Input());
  EXPECT_TRUE(plan.no_new_privs);
  EXPECT_EQ(plan.capability_bounding, 0U);
  EXPECT_FALSE(plan.keep_capabilities);
  EXPECT_TRUE(plan.landlock.enabled);
  EXPECT_TRUE(plan.seccomp.enabled);
  EXPECT_EQ(plan.namespaces, Namespaces::kAll);
}

TEST(ProcessWallsWithoutNamespaces, SaysWhatIsMissing) {
  const auto lines = Describe(ProcessWallsWithoutNamespaces(Input()));
  EXPECT_THAT(lines, Contains(HasSubstr("note: second path")));
  EXPECT_THAT(lines, Contains("namespaces: none"));
}

}  // namespace
}  // namespace soma::walls
