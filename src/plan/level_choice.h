// SPDX-License-Identifier: Apache-2.0
// LevelChoice: at which isolation level one run happens, and why. Pure.
#ifndef SOMA_PLAN_LEVEL_CHOICE_H_
#define SOMA_PLAN_LEVEL_CHOICE_H_

#include <string>

#include "base/result.h"
#include "policy/model.h"

namespace soma::plan {

// What this machine proved. `figure` says by which measurement, or what is missing.
struct LevelProof {
  bool proven = false;
  std::string figure;
};

struct MachineLevels {
  LevelProof container{true, ""};
  LevelProof gvisor;
  LevelProof microvm;  // by the timed ring-0 probe: a virtual machine under emulation fails it
  LevelProof confidential;
};

struct LevelChoice {
  policy::Level level = policy::Level::kProcess;
  std::string reason;  // "default", "--isolation", "minimum = \"container\" at u:3"
};

// For `soma run`: the level that the policy names, else `process`, raised to the weakest proven
// level that satisfies the policy's minimum. Never `emulated` or `none` unless named.
// kFailedPrecondition when the named level is below the minimum or not proven, or nothing proven
// satisfies the minimum; the message has the figure and the way out.
Result<LevelChoice> ChooseRunLevel(const policy::Policy& policy, const MachineLevels& machine);

}  // namespace soma::plan

#endif  // SOMA_PLAN_LEVEL_CHOICE_H_
