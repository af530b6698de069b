// SPDX-License-Identifier: Apache-2.0
// RunSetting: what a policy means for one command in a sandbox of its own (levels container and
// emulated), as the options of sandbox/foreground_run.h, and what the caller should know about it.
#ifndef SOMA_CLI_RUN_SETTING_H_
#define SOMA_CLI_RUN_SETTING_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/level_choice.h"
#include "policy/model.h"
#include "sandbox/foreground_run.h"

namespace soma::cli {

// The template that such a run starts from, and its ordinary user.
inline constexpr std::string_view kRunTemplate = "base";
inline constexpr std::string_view kRunUser = "user";
// An ordinary user's container has one id only: root inside, the caller outside.
inline constexpr std::string_view kOnlyUser = "root";

struct RunCaller {
  std::string current_directory;
  std::vector<std::string_view> environment;  // NAME=value
  bool is_root = true;  // else the container is the rootless one (launcher/container_plan.h)
};

// Pure. `policy` must outlive the result, whose is_hidden asks it. Left to fill in:
// launcher_socket, journal_directory, sandbox_id, command, terminal, and what concerns the way out.
// kUnimplemented for another level.
Result<sandbox::ForegroundOptions> RunSetting(const policy::Policy& policy,
                                              const plan::LevelChoice& choice,
                                              const RunCaller& caller);

// What stands around the command, one line each.
std::vector<std::string> ExplainSetting(const sandbox::ForegroundOptions& setting);

// What differs from `process`, one line each: where changes go, what the level is not.
std::vector<std::string> RunNotes(const sandbox::ForegroundOptions& setting);

}  // namespace soma::cli

#endif  // SOMA_CLI_RUN_SETTING_H_
