// SPDX-License-Identifier: Apache-2.0
// Turning single walls off, in test builds only (base/test_switch.h): a security test runs its
// attack once with all walls and once without the one that should stop it. Internal.
#ifndef SOMA_WALLS_TEST_WALLS_H_
#define SOMA_WALLS_TEST_WALLS_H_

#include "walls/plan.h"

namespace soma::walls {

#if SOMA_TEST_SWITCHES
// The names: user mount pid network ipc uts cgroup-namespace landlock seccomp capabilities
// no-new-privs limits hide read-only.
void SwitchWallsOff(WallPlan& plan);
#else
inline void SwitchWallsOff(WallPlan&) {}
#endif

}  // namespace soma::walls

#endif  // SOMA_WALLS_TEST_WALLS_H_
