// SPDX-License-Identifier: Apache-2.0
// The parts of a task's plan that are the same with namespaces and without. Internal. Pure.
#ifndef SOMA_PLAN_TASK_PARTS_H_
#define SOMA_PLAN_TASK_PARTS_H_

#include "base/result.h"
#include "plan/task_plan.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "walls/plan.h"

namespace soma::plan {

// kUnimplemented for what no plan at level `process` can keep.
Status CheckEnforceable(const policy::Policy& policy);

// The cgroup where one can be made, else the named regime "rlimit" with its notes.
void SetLimits(walls::WallPlan& walls, const TaskPlanInputs& in);

// Arguments, environment, working directory, umask.
void SetCommand(walls::WallPlan& walls, const TaskPlanInputs& in);

}  // namespace soma::plan

#endif  // SOMA_PLAN_TASK_PARTS_H_
