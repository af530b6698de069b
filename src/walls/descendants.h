// SPDX-License-Identifier: Apache-2.0
// Ending children without a pid namespace to do it. Internal; never allocates.
#ifndef SOMA_WALLS_DESCENDANTS_H_
#define SOMA_WALLS_DESCENDANTS_H_

#include <sys/types.h>

namespace soma::walls {

// SIGKILL to every child of `parent`, which is the caller, found in /proc. A subreaper that repeats
// this and reaps in between ends all its descendants. True if there was one.
bool KillChildren(pid_t parent) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_DESCENDANTS_H_
