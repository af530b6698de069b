// SPDX-License-Identifier: Apache-2.0
// The mount view: builds WallPlan::mounts in the calling process's own mount namespace and enters
// it.
//
// Internal; runs between fork and exec with the capabilities of the own user namespace: allocates
// nothing. Every target is looked up below the new root by descriptor, without symlinks, so neither
// what lies in the workspace nor a half-built view can lead a mount elsewhere.
#ifndef SOMA_WALLS_MOUNT_VIEW_H_
#define SOMA_WALLS_MOUNT_VIEW_H_

#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {

// Afterwards "/" is the plan's root, the old tree is gone, the working directory is "/".
StepFailure BuildMountView(Recipe& recipe) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_MOUNT_VIEW_H_
