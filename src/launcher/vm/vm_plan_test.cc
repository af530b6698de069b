// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/vm_plan.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::launcher {
namespace {

VmPlanInput Example() {
  return {.memory_bytes = std::uint64_t{256} << 20,
          .scratch_bytes = std::uint64_t{512} << 20,
          .tsc_khz = 2'445'000,
          .kernel_directory = "/var/lib/soma/launcher/kernel",
          .host_root_id = 0x70000001,
          .host_qemu_id = 0x70000002};
}

TEST(VmPlan, IsAPlanThatCanBeApplied) {
  const auto plan = VmPlan(Example());
  ASSERT_TRUE(plan) << plan.error().message();
  const auto valid = walls::Validate(*plan);
  EXPECT_TRUE(valid) << valid.error().message();
}

TEST(VmPlan, GivesTheMonitorNothing) {
  const auto plan = *VmPlan(Example());
  EXPECT_EQ(plan.capability_bounding, 0U);
  EXPECT_FALSE(plan.keep_capabilities);
  EXPECT_TRUE(plan.no_new_privs);
  EXPECT_EQ(plan.namespaces, walls::Namespaces::kAll);
  EXPECT_EQ(plan.network, walls::NetworkKind::kLoopback);
  EXPECT_TRUE(plan.seccomp.enabled);
  EXPECT_EQ(plan.seccomp.profile, walls::SeccompProfile::kVmm);
  EXPECT_NE(plan.uid, 0U);
  EXPECT_TRUE(plan.environment.empty());
}

TEST(VmPlan, ShowsOnlyReadOnlyLibrariesAndTheKernel) {
  const auto plan = *VmPlan(Example());
  for (const walls::MountItem& item : plan.mounts) {
    if (item.kind == walls::MountKind::kBind) {
      EXPECT_TRUE(item.read_only) << item.target;
      EXPECT_FALSE(item.allow_suid) << item.target;
    }
    EXPECT_NE(item.kind, walls::MountKind::kProc);
    for (const char* hidden : {"/home", "/root", "/etc", "/var", "/bin", "/usr/bin"})
      EXPECT_NE(item.target, hidden);
  }
}

TEST(VmPlan, PassesEachDescriptorOnce) {
  const auto plan = *VmPlan(Example());
  std::set<std::uint32_t> inside;
  for (const walls::DescriptorPass& pass : plan.descriptors) {
    EXPECT_TRUE(inside.insert(pass.inside).second);
    EXPECT_LT(pass.slot, kVmSlots);
  }
}

TEST(VmPlan, BoundsTheScratchDisk) {
  const auto plan = *VmPlan(Example());
  const auto limit = std::ranges::find(plan.limits, static_cast<std::uint32_t>(RLIMIT_FSIZE),
                                       &walls::ResourceLimit::resource);
  ASSERT_NE(limit, plan.limits.end());
  EXPECT_EQ(limit->value, std::uint64_t{512} << 20);
}

TEST(VmPlan, RefusesIdsThatAreSomebodyElses) {
  VmPlanInput input = Example();
  input.host_qemu_id = 0;
  EXPECT_FALSE(VmPlan(input));
  input = Example();
  input.host_root_id = input.host_qemu_id;
  EXPECT_FALSE(VmPlan(input));
}

}  // namespace
}  // namespace soma::launcher
