// SPDX-License-Identifier: Apache-2.0
// Step: the named steps in which a plan is applied. Between fork and exec a failure is only a pair
// {step, errno}; this gives it words afterwards.
#ifndef SOMA_WALLS_STEP_H_
#define SOMA_WALLS_STEP_H_

#include <cstdint>
#include <string_view>

namespace soma::walls {

// The values travel between our own processes of one build only.
enum class Step : std::uint8_t {
  kNone = 0,
  kPrepareMounts,  // in the launcher: detached mounts that need its privilege
  kCloneOuter,
  kCloneTask,
  kWriteIdMaps,
  kEnterCgroup,
  kTieToLauncher,  // die when the launcher dies
  kHostName,
  kLoopback,
  kCapture,
  kMountRoot,
  kMountItem,  // `item` is its index in WallPlan::mounts
  kSealMounts,
  kEnterRoot,
  kLimits,
  kTerminal,
  kIdentity,
  kBoundCapabilities,
  kDropCapabilities,
  kNoNewPrivileges,
  kLandlock,  // `item` is the index of the rule, or their number for the act itself
  kSeccomp,
  kHandOut,  // sending the listener, the terminal or the sockets of the capture
  kDescriptors,
  kForkCommand,
  kWorkingDirectory,
  kExecute,
};

// "mount item", "seccomp", …: lower case, for "step: errno" lines.
std::string_view StepName(Step step);

// What the launching process says when the plan can't be applied.
struct StepFailure {
  Step step = Step::kNone;
  std::uint32_t item = 0;
  int errno_value = 0;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_STEP_H_
