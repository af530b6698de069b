// SPDX-License-Identifier: Apache-2.0
// The overlay that makes calls wait, and the table by which the supervisor reads them, must name
// the same calls: a call that waits but isn't understood would pass without a verdict.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include <cstdint>

#include "tools/seccomp/interpreter.h"
#include "tools/seccomp/policy.h"
#include "walls/call_shape.h"
#include "walls/seccomp_profile.h"

namespace soma::seccomp {
namespace {

// Arguments with all bits set, then none: between them every test of the overlay holds once.
bool MayNotify(walls::SeccompProfile profile, int number) {
  const auto program = walls::ProgramFor(profile, walls::SeccompNotify::kMutating);
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    seccomp_data data{.nr = number, .arch = AUDIT_ARCH_X86_64};
    for (auto& argument : data.args) argument = value;
    if (Interpret(program.instructions, data) == SECCOMP_RET_USER_NOTIF) return true;
  }
  return false;
}

TEST(NotifyShapes, EveryWaitingCallIsUnderstoodAndTheOtherWayRound) {
  for (int number = 0; number < 600; ++number) {
    const bool notifies = MayNotify(walls::SeccompProfile::kStrict, number) ||
                          MayNotify(walls::SeccompProfile::kRooted, number);
    EXPECT_EQ(notifies, walls::FindCallShape(number) != nullptr)
        << number << " " << CallName(static_cast<std::uint32_t>(number));
  }
}

TEST(NotifyShapes, EveryProfileHasANameAndAProgram) {
  for (const auto profile :
       {walls::SeccompProfile::kStrict, walls::SeccompProfile::kRooted, walls::SeccompProfile::kVmm,
        walls::SeccompProfile::kServer, walls::SeccompProfile::kAlone}) {
    EXPECT_EQ(walls::ParseSeccompProfile(walls::SeccompProfileName(profile)), profile);
    EXPECT_GT(walls::ProgramFor(profile, walls::SeccompNotify::kNone).instructions.size(), 50U);
  }
  EXPECT_FALSE(walls::ParseSeccompProfile("none"));
}

}  // namespace
}  // namespace soma::seccomp
