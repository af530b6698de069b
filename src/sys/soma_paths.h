// SPDX-License-Identifier: Apache-2.0
// Where our state and our run-time sockets live. Read from the environment of a process that its
// user started; never inside a sandbox.
#ifndef SOMA_SYS_SOMA_PATHS_H_
#define SOMA_SYS_SOMA_PATHS_H_

#include <string>

#include "base/result.h"

namespace soma::sys {

// $SOMA_STATE_DIR; else /var/lib/soma for root; else $XDG_STATE_HOME/soma or ~/.local/state/soma.
// kFailedPrecondition when a user has neither, or when a given path is not absolute.
Result<std::string> StateDirectory();

// $SOMA_RUNTIME_DIR; else /run/soma for root; else $XDG_RUNTIME_DIR/soma, or `run` below the state.
Result<std::string> RuntimeDirectory();

// Whoever looks for a launcher that commands start, starts one or leaves it, holds this file
// locked.
std::string RunGatePath(const std::string& runtime);

// The directory of this program: the others lie beside it.
Result<std::string> ProgramDirectory();

}  // namespace soma::sys

#endif  // SOMA_SYS_SOMA_PATHS_H_
