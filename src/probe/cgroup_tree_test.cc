// SPDX-License-Identifier: Apache-2.0
#include "probe/cgroup_tree.h"

#include <gtest/gtest.h>

#include <string_view>

namespace soma::probe {
namespace {

constexpr std::string_view kHybridMounts =
    "30 25 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
    "31 25 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 25 0:28 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
constexpr std::string_view kHybridCgroups = "5:memory:/user/1\n4:cpu,cpuacct:/\n0::/user/1\n";

constexpr std::string_view kUnifiedMounts =
    "35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(FindCgroup, Hybrid) {
  const auto memory = FindCgroup(kHybridMounts, kHybridCgroups, "memory");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->directory, "/sys/fs/cgroup/memory/user/1");
  EXPECT_FALSE(memory->v2);
  EXPECT_EQ(FindCgroup(kHybridMounts, kHybridCgroups, "cpu")->directory,
            "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(FindCgroup(kHybridMounts, kHybridCgroups, "")->directory,
            "/sys/fs/cgroup/unified/user/1");
}

TEST(FindCgroup, Unified) {
  const auto memory = FindCgroup(kUnifiedMounts, "0::/user.slice/x\n", "memory");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->directory, "/sys/fs/cgroup/user.slice/x");
  EXPECT_TRUE(memory->v2);
}

TEST(FindCgroup, NothingThere) {
  EXPECT_FALSE(FindCgroup("", "0::/\n", "memory"));
  EXPECT_FALSE(FindCgroup(kUnifiedMounts, "", "memory"));
  EXPECT_FALSE(FindCgroup("nonsense\n- - -\n", "nonsense\n", "pids"));
}

TEST(FindCgroup, AMountOfAPart) {
  const auto place =
      FindCgroup("1 2 0:3 /docker/x /sys/fs/cgroup rw - cgroup2 c rw\n", "0::/docker/x/y\n", "");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->directory, "/sys/fs/cgroup/y");
}

}  // namespace
}  // namespace soma::probe
