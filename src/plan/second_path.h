// SPDX-License-Identifier: Apache-2.0
// SecondPath: the walls of one `soma run` at level `process` where no namespaces can be had:
// Landlock, the seccomp profile `alone`, no_new_privs and limits over the host's own view. Pure.
//
// Landlock only ever adds up what is allowed below a path, so a rule that takes something away
// below what another rule gives can't be kept, nor can a network rule (there is no socket at all).
// What can't be kept is refused; what is weaker than the level promises is in TaskPlan::missing.
#ifndef SOMA_PLAN_SECOND_PATH_H_
#define SOMA_PLAN_SECOND_PATH_H_

#include "base/result.h"
#include "plan/task_plan.h"

namespace soma::plan {

// kFailedPrecondition, with the lack and the rule's place, when the policy's minimum is `process`
// or above, when the kernel has no Landlock, and for rules that can't be kept.
Result<TaskPlan> BuildSecondPath(const TaskPlanInputs& inputs);

}  // namespace soma::plan

#endif  // SOMA_PLAN_SECOND_PATH_H_
