// SPDX-License-Identifier: Apache-2.0
// Init: the forked, exec-less pid 1 of a task (or, without a pid namespace, its subreaper). It
// starts the command, reaps whatever is orphaned, passes signals on, reports the end, and takes
// everything with it.
//
// Internal; never allocates. It holds no secret and no descriptor of the task's, and can't be
// traced.
#ifndef SOMA_WALLS_INIT_H_
#define SOMA_WALLS_INIT_H_

#include "sys/fd.h"
#include "walls/recipe.h"

namespace soma::walls {

// What the steps before have made for the command.
struct Inside {
  Fd signals;          // signalfd for SIGCHLD
  Fd terminal_master;  // both only with TerminalKind::kPty
  Fd terminal_slave;
  Fd listener;
  int capture[4] = {-1, -1, -1, -1};
};

// Tells the launcher that all walls stand, and hands out what it is to have. 0 or an errno.
int SendStands(const Recipe& recipe, const Inside& inside) noexcept;

// With a pid namespace: the walls stand already, the command is started by vfork.
// Without: the command is forked, and gives up its privileges itself, so that init can still look
// for its descendants in /proc when all has to end.
[[noreturn]] void RunInit(const Recipe& recipe, Inside& inside) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_INIT_H_
