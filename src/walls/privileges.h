// SPDX-License-Identifier: Apache-2.0
// Who the task is and what it may never become: ids, capabilities, no_new_privs, Landlock, seccomp,
// limits.
//
// Internal; between fork and exec.
#ifndef SOMA_WALLS_PRIVILEGES_H_
#define SOMA_WALLS_PRIVILEGES_H_

#include "sys/fd.h"
#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {

// Becomes uid 0 (or the only mapped id) of the user namespace that the caller has just entered, so
// that what is made next belongs to somebody there. No-op without a user namespace.
StepFailure BecomeNamespaceOwner(const UserNamespace& user, bool set_groups) noexcept;

StepFailure SetLimits(const WallPlan& plan) noexcept;

// The last steps, in the only order that works: bounding set, ids, no_new_privs, Landlock, seccomp,
// capabilities. Afterwards nothing in here can be undone. `listener` is set if the plan asks for
// one; from then on the calls that the profile notifies wait for whoever serves it.
StepFailure GiveUpPrivileges(const Recipe& recipe, Fd& listener) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_PRIVILEGES_H_
