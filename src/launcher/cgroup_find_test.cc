// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string_view>

#include "launcher/cgroup_tree.h"

namespace soma::launcher {
namespace {

TEST(FindHierarchies, UnifiedOnly) {
  const auto found = FindHierarchies(
      "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
      "0::/system.slice/soma.service\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].version, CgroupVersion::kV2);
  EXPECT_EQ(found[0].directory, "/sys/fs/cgroup/system.slice/soma.service");
}

TEST(FindHierarchies, VersionOneBesideAnEmptyVersionTwo) {
  constexpr std::string_view kMounts =
      "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "32 23 0:28 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
      "33 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "34 23 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
      "35 23 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  constexpr std::string_view kOwn = "4:memory:/a/b\n8:pids:/\n2:cpuacct:/\n1:cpu:/\n0::/\n";
  const auto found = FindHierarchies(kMounts, kOwn);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_TRUE(found[0].cpu);
  EXPECT_EQ(found[1].directory, "/sys/fs/cgroup/memory/a/b");
  EXPECT_EQ(found[3].version, CgroupVersion::kV2);
  EXPECT_EQ(found[3].directory, "/sys/fs/cgroup/unified");
}

TEST(FindHierarchies, ARestartedWorkerFindsTheCgroupNotItsLeaf) {
  const auto found = FindHierarchies("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                                     "0::/system.slice/soma.service/soma-launcher\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].directory, "/sys/fs/cgroup/system.slice/soma.service");
}

TEST(FindHierarchies, JointControllersAndOptionalFields) {
  const auto found = FindHierarchies(
      "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup "
      "rw,cpu,cpuacct\n",
      "5:cpu,cpuacct:/x\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].directory, "/sys/fs/cgroup/cpu,cpuacct/x");
}

TEST(FindHierarchies, NonsenseGivesNothing) {
  EXPECT_TRUE(FindHierarchies("", "").empty());
  EXPECT_TRUE(FindHierarchies("- - - -\nx", "::\n:").empty());
}

}  // namespace
}  // namespace soma::launcher
