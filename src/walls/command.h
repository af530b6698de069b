// SPDX-License-Identifier: Apache-2.0
// The command: descriptors, session, working directory, execve. Internal; between fork and exec.
#ifndef SOMA_WALLS_COMMAND_H_
#define SOMA_WALLS_COMMAND_H_

#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {

// Becomes the command. Returns only when that isn't possible. `terminal` >= 0 becomes the standard
// streams and the controlling terminal. Safe in a vfork child: touches nothing of the parent's
// memory.
StepFailure Execute(const Recipe& recipe, int terminal) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_COMMAND_H_
