// SPDX-License-Identifier: Apache-2.0
#include "walls/task_cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace soma::walls {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "36 31 0:33 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

TEST(CgroupPlaces, FindsVersion1BesideAnEmptyUnifiedHierarchy) {
  const auto places =
      ParseCgroupPlaces("4:memory:/user/a:b\n2:cpu,cpuacct:/\n0::/\n", kHybridMounts);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].directory, "/sys/fs/cgroup/memory/user/a:b");
  EXPECT_FALSE(places[0].at_root);
  EXPECT_THAT(places[1].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_EQ(places[1].directory, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_TRUE(places[2].unified);
  EXPECT_TRUE(places[2].at_root);
}

TEST(CgroupPlaces, FindsTheUnifiedHierarchy) {
  const auto places = ParseCgroupPlaces(
      "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n",
      "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].directory,
            "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope");
}

TEST(CgroupPlaces, LeavesOutWhatIsNotMounted) {
  EXPECT_TRUE(ParseCgroupPlaces("8:pids:/\n", kHybridMounts).empty());
  EXPECT_TRUE(ParseCgroupPlaces("nonsense\n:\n", "also nonsense").empty());
}

}  // namespace
}  // namespace soma::walls
