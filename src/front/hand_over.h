// SPDX-License-Identifier: Apache-2.0
// HandOver: becomes `soma-tools`, the program beside this one that has the heavy libraries.
//
// For `soma run` at a level above `process` the hand-over is:
//   soma-tools run --handover-fd N [-t] [-i] [-q] [--json] [--report FILE] -- COMMAND
//   [ARGUMENTS...]
// where descriptor N is a memfd, at offset 0, with the text of policy/handover.h. The receiver
// loads the policy from it, chooses the level as `soma` did (plan/level_choice.h), and runs in the
// workspace.
#ifndef SOMA_FRONT_HAND_OVER_H_
#define SOMA_FRONT_HAND_OVER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "front/arguments.h"
#include "policy/handover.h"
#include "sys/fd.h"

namespace soma::front {

// The path of soma-tools.
Result<std::string> ToolsProgram();

// An anonymous file with this text, close-on-exec.
Result<Fd> TextInMemory(std::string_view text);

// Replaces this process; returns only with an error.
Error BecomeTools(std::span<const std::string_view> arguments);
Error HandOverRun(const RunOptions& options, const policy::Handover& handover);

}  // namespace soma::front

#endif  // SOMA_FRONT_HAND_OVER_H_
