// SPDX-License-Identifier: Apache-2.0
// Turning single walls off, in test builds only (base/test_switch.h): a security test runs its
// attack once with all walls and once without the one that should stop it. For Launch and the test
// programs.
#ifndef SOMA_WALLS_TEST_WALLS_H_
#define SOMA_WALLS_TEST_WALLS_H_

#include <string_view>
#include <vector>

#include "walls/plan.h"

namespace soma::walls {

#if SOMA_TEST_SWITCHES
// What SOMA_TEST_WITHOUT names, taken out of a plan that is valid as a whole.
void SwitchWallsOff(WallPlan& plan);
// Every name that SwitchWallsOff knows; tests/security/test_one_wall_off.py has an attack for each.
std::vector<std::string_view> SwitchNames();
#else
inline void SwitchWallsOff(WallPlan&) {}
inline std::vector<std::string_view> SwitchNames() { return {}; }
#endif

}  // namespace soma::walls

#endif  // SOMA_WALLS_TEST_WALLS_H_
