// SPDX-License-Identifier: Apache-2.0
// MachineFacts: the few things about this machine that one `soma run` has to know, found out in
// microseconds. What needs a live probe (KVM) is asked only when a level needs it.
#ifndef SOMA_FRONT_MACHINE_FACTS_H_
#define SOMA_FRONT_MACHINE_FACTS_H_

#include "plan/level_choice.h"
#include "plan/task_plan.h"

namespace soma::front {

plan::Machine LookAtMachine();

// For the choice of a level above `process`.
plan::MachineLevels ProveLevels();

}  // namespace soma::front

#endif  // SOMA_FRONT_MACHINE_FACTS_H_
