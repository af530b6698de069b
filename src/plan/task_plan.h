// SPDX-License-Identifier: Apache-2.0
// TaskPlan: policy + path facts + machine + command → the walls of one `soma run` at level
// `process`. Pure.
#ifndef SOMA_PLAN_TASK_PLAN_H_
#define SOMA_PLAN_TASK_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/view.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "walls/plan.h"
#include "walls/process_walls.h"

namespace soma::plan {

struct Caller {
  walls::RunIdentity identity;  // who the command is, by walls::ChooseIdentity
  std::uint32_t umask = 022;
  std::string home;  // real path, "" when there is none
};

struct Machine {
  bool cgroup_writable = false;  // a child of our own cgroup can be made and limited
  int landlock_abi = 0;
  bool may_notify = true;  // no other supervisor above us (EBUSY)
  bool namespaces = true;
  std::string namespaces_lack;  // without them: which step was refused, and how
};

struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // of the caller, unfiltered
  std::string working_directory;         // the caller's; used when it lies in the workspace
  bool terminal = false;
};

struct TaskPlanInputs {
  const policy::Policy& policy;
  const policy::PathFacts& facts;
  const Caller& caller;
  const Machine& machine;
  const Command& command;
  std::string cgroup_name;    // one component, unique to this run
  std::string private_place;  // a directory of this run, used where no namespaces can be had
};

// In TaskPlan::missing when `Machine::may_notify` is false.
inline constexpr std::string_view kNoReports =
    "missing: reports: another supervisor is above this one, so refusals are not listed";

struct TaskPlan {
  walls::WallPlan walls;
  View view;
  // Said before the command starts, one line each: what stands less than the level promises.
  std::vector<std::string> missing;
  bool limits_by_cgroup = false;
};

// kUnimplemented for what the level can't keep (profile `rooted`, ephemeral with a live workspace),
// kFailedPrecondition when a root caller's sandbox would have to be root. A rule that can't be kept
// is an error, never a note; notes are about walls that are weaker than on another machine.
// Without namespaces: second_path.h, with its further errors.
Result<TaskPlan> BuildTaskPlan(const TaskPlanInputs& inputs);

}  // namespace soma::plan

#endif  // SOMA_PLAN_TASK_PLAN_H_
