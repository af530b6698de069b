// SPDX-License-Identifier: Apache-2.0
// soma-tools: all commands that don't have to start in a millisecond. `soma` hands them over by
// exec, so a user types `soma audit verify`.
#ifndef SOMA_CLI_TOOLS_H_
#define SOMA_CLI_TOOLS_H_

#include "base/clock.h"

namespace soma::cli {

// Parses and runs one command line; returns the exit code.
int RunTools(int argc, char** argv, Clock& clock, Random& random);

}  // namespace soma::cli

#endif  // SOMA_CLI_TOOLS_H_
