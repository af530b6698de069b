// SPDX-License-Identifier: Apache-2.0
#include "walls/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Every field differs from its default, so that a forgotten one shows in the round trip.
WallPlan FullPlan() {
  WallPlan plan;
  plan.user_namespaces = {{.uids = {{0, 1000, 1}, {1, 70000, 65536}}, .gids = {{0, 1001, 1}}},
                          {.uids = {{0, 1, 65536}}, .gids = {{0, 0, 1}}}};
  plan.namespaces = Namespaces::kAll;
  plan.init = true;
  plan.host_name = "soma";
  plan.mounts = {
      {.kind = MountKind::kTmpfs,
       .target = "/",
       .read_only = true,
       .size_bytes_max = 4096,
       .inodes_max = 9},
      {.kind = MountKind::kBind,
       .target = "/work",
       .source = "/home/u/w",
       .id_map = {.uids = {{1000, 70000, 1}}, .gids = {{100, 70000, 1}}}},
      {.kind = MountKind::kBind, .target = "/handed", .slot = 2, .no_exec = true, .optional = true},
      {.kind = MountKind::kOverlay,
       .target = "/ov",
       .lowers = {"/a", "/b"},
       .upper = "/u",
       .work = "/w",
       .volatile_upper = true},
      {.kind = MountKind::kFile, .target = "/etc/x", .mode = 0600, .content = "hello"},
      {.kind = MountKind::kSymlink, .target = "/bin", .source = "usr/bin"},
  };
  plan.network = NetworkKind::kCapture;
  plan.uid = 7;
  plan.gid = 0;
  plan.groups = {5, 6};
  plan.capability_bounding = 3;
  plan.no_new_privs = true;
  plan.landlock = {
      .enabled = true, .abi_min = 3, .rules = {{"/usr", 5, true}}, .scope_signals = false};
  plan.seccomp = {
      .enabled = true, .profile = SeccompProfile::kRooted, .notify = SeccompNotify::kMutating};
  plan.limits = {{RLIMIT_NOFILE, 100}};
  plan.cgroup = {.mode = CgroupMode::kCreate,
                 .name = "soma-1",
                 .slots = {1},
                 .memory_bytes_max = 5,
                 .pids_max = 6,
                 .cpu_percent_max = 7};
  plan.terminal = TerminalKind::kPty;
  plan.descriptors = {{1, 3}};
  plan.working_directory = "/work";
  plan.arguments = {"sh", "-c", ""};
  plan.execute_slot = 4;
  plan.environment = {"SECRET=hunter2", "EMPTY="};
  plan.umask = 077;
  plan.notes = {"limits: rlimit"};
  return plan;
}

Status Check(WallPlan plan, auto change) {
  change(plan);
  return Validate(plan);
}

TEST(WallPlan, SurvivesEncoding) {
  const WallPlan plan = FullPlan();
  ASSERT_TRUE(Validate(plan)) << Validate(plan).error().message();
  const auto decoded = Decode(Encode(plan));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(*decoded, plan);
}

TEST(WallPlan, DecodeRefusesEveryTruncation) {
  const Bytes encoded = Encode(FullPlan());
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(Decode(ByteView(encoded).first(size))) << size;
  }
  Bytes longer = encoded;
  longer.push_back(0);
  EXPECT_FALSE(Decode(longer));
}

TEST(WallPlan, DecodeRefusesALyingCount) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.Put(std::uint32_t{1});           // version
  writer.Put(std::uint32_t{0xFFFFFFFF});  // user namespaces
  EXPECT_FALSE(Decode(bytes));
}

TEST(WallPlan, DescribesWithoutSecrets) {
  const auto lines = Describe(FullPlan());
  EXPECT_THAT(lines, Contains("namespaces: mount pid network ipc uts cgroup"));
  EXPECT_THAT(lines, Contains("mount: /work bind from=/home/u/w id_map=1000>70000+1"));
  EXPECT_THAT(lines, Contains("capabilities: chown dac_override (bounding set only)"));
  EXPECT_THAT(lines, Contains("environment: SECRET"));
  for (const std::string& line : lines) EXPECT_THAT(line, ::testing::Not(HasSubstr("hunter2")));
}

TEST(WallPlan, EscapesForeignBytes) {
  WallPlan plan = FullPlan();
  plan.mounts[1].target = "/a\nmount: /fake";
  for (const std::string& line : Describe(plan)) EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(WallPlan, RefusesPathsThatAreNotNormalised) {
  for (const std::string path : {"", "relative", "/a/../b", "/a/./b", "/a//b", "/a/", "//"}) {
    EXPECT_FALSE(Check(FullPlan(), [&](WallPlan& plan) { plan.mounts[1].target = path; })) << path;
    EXPECT_FALSE(Check(FullPlan(), [&](WallPlan& plan) { plan.mounts[1].source = path; })) << path;
    EXPECT_FALSE(Check(FullPlan(), [&](WallPlan& plan) { plan.working_directory = path; })) << path;
  }
  EXPECT_FALSE(
      Check(FullPlan(), [](WallPlan& plan) { plan.mounts[1].target = std::string("/a\0b", 4); }));
}

TEST(WallPlan, RefusesContradictions) {
  const auto refused = [](auto change) { EXPECT_FALSE(Check(FullPlan(), change)); };
  refused([](WallPlan& plan) { plan.mounts[1].target = "/ov"; });              // twice
  refused([](WallPlan& plan) { std::swap(plan.mounts[0], plan.mounts[1]); });  // no root first
  refused([](WallPlan& plan) { plan.mounts[1].target = "/handed/below"; });    // below a later one
  refused([](WallPlan& plan) { plan.mounts[1].allow_suid = true; });           // but no_new_privs
  refused([](WallPlan& plan) { plan.uid = 65536; });                           // not mapped
  refused([](WallPlan& plan) { plan.network = NetworkKind::kHost; });          // own namespace
  refused([](WallPlan& plan) { plan.namespaces = Namespaces::kPid; });         // mounts, host name
  refused([](WallPlan& plan) { plan.init = false; });                          // pty, listener
  refused([](WallPlan& plan) { plan.keep_capabilities = true; });              // uid 7
  refused([](WallPlan& plan) { plan.arguments.clear(); });
  refused([](WallPlan& plan) { plan.environment = {"=x"}; });
  refused([](WallPlan& plan) { plan.cgroup.name = "../x"; });
  refused([](WallPlan& plan) { plan.descriptors = {{0, 3}, {1, 3}}; });
  refused([](WallPlan& plan) { plan.user_namespaces.push_back({}); });
  refused([](WallPlan& plan) { plan.limits = {{99, 1}}; });
}

}  // namespace
}  // namespace soma::walls
