// SPDX-License-Identifier: Apache-2.0
// MachineFacts: the few things about this machine that one `soma run` has to know, found out in
// microseconds. What needs a live probe (KVM) is asked only when a level needs it.
#ifndef SOMA_FRONT_MACHINE_FACTS_H_
#define SOMA_FRONT_MACHINE_FACTS_H_

#include "base/result.h"
#include "plan/level_choice.h"
#include "plan/task_plan.h"
#include "walls/process_walls.h"

namespace soma::front {

// Supposes that namespaces and a supervisor of our own can be had, as nearly everywhere: to find
// out costs as much as a start.
plan::Machine LookAtMachine();

// After a launch has failed, or where the time doesn't matter: tries both live, each by a task of
// its own that has nothing to do with the workspace, so that nobody inside can bring it about that
// the weaker walls are taken. A few milliseconds. Fails where there was too little of something
// (descriptors, processes, memory): that says nothing about what the machine allows.
Status LookClosely(plan::Machine& machine, const walls::RunIdentity& identity);

// For the choice of a level above `process`.
plan::MachineLevels ProveLevels();

}  // namespace soma::front

#endif  // SOMA_FRONT_MACHINE_FACTS_H_
