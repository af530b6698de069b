// SPDX-License-Identifier: Apache-2.0
// `soma run`: one command inside walls. The whole way: arguments, policy, level, plan, journal,
// launch, report.
#ifndef SOMA_FRONT_RUN_H_
#define SOMA_FRONT_RUN_H_

#include <span>
#include <string_view>

#include "base/clock.h"

namespace soma::front {

// `soma`'s own failure, as container tools have it.
inline constexpr int kExitOwnFailure = 125;

// `arguments` stand behind "run". Gives the process's exit code: the command's own, 128 + N, 125,
// 126 or 127. Writes to stdout only for --help and --explain, to stderr only one line for a failure
// of ours and the summary at the end. Signals stay blocked afterwards: the caller exits.
int RunMain(std::span<const std::string_view> arguments, Clock& clock, Random& random);

}  // namespace soma::front

#endif  // SOMA_FRONT_RUN_H_
