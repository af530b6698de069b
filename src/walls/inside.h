// SPDX-License-Identifier: Apache-2.0
// The task's side of Launch, from the clone to the exec. Internal.
#ifndef SOMA_WALLS_INSIDE_H_
#define SOMA_WALLS_INSIDE_H_

#include <cstdint>

#include "walls/recipe.h"

namespace soma::walls {

// CLONE_NEW* for the process that Launch clones: with two user namespaces the outer one and the
// network, else everything.
std::uint64_t CloneFlags(const WallPlan& plan) noexcept;

// Runs in the clone, with all signals blocked. Every failure goes up the channel.
[[noreturn]] void RunInside(Recipe& recipe) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_INSIDE_H_
