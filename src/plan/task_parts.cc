// SPDX-License-Identifier: Apache-2.0
#include "plan/task_parts.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "plan/task_plan.h"
#include "policy/decide.h"
#include "policy/environment.h"
#include "policy/level.h"
#include "policy/model.h"
#include "policy/path_pattern.h"
#include "walls/plan.h"

namespace soma::plan {

Status CheckEnforceable(const policy::Policy& policy) {
  if (policy.task.profile.value == policy::TaskProfile::kRooted) {
    return Fail(Errc::kUnimplemented,
                StrCat("profile \"rooted\" (", policy.task.profile.origin.ToText(),
                       ") needs a root of its own: use --isolation container"));
  }
  if (policy.task.ephemeral.value) {
    return Fail(Errc::kUnimplemented,
                StrCat("ephemeral = true (", policy.task.ephemeral.origin.ToText(),
                       ") can't be kept for a live workspace: use --isolation container"));
  }
  return {};
}

void SetLimits(walls::WallPlan& walls, const TaskPlanInputs& in) {
  const policy::Limits& limits = in.policy.limits;
  walls.limits.push_back({RLIMIT_CORE, 0});  // a core file would hold what the task had in memory
  if (in.machine.cgroup_writable) {
    walls.cgroup.mode = walls::CgroupMode::kCreate;
    walls.cgroup.name = in.cgroup_name;
    if (limits.memory_bytes) walls.cgroup.memory_bytes_max = limits.memory_bytes->value;
    if (limits.pids) walls.cgroup.pids_max = limits.pids->value;
    if (limits.cpu_milli)
      walls.cgroup.cpu_percent_max = std::max<std::uint64_t>(1, limits.cpu_milli->value / 10);
    return;
  }
  walls.notes.emplace_back(
      "limits: rlimit (no writable cgroup): memory is counted for each process, not for all");
  if (limits.memory_bytes) walls.limits.push_back({RLIMIT_DATA, limits.memory_bytes->value});
  if (limits.pids) walls.limits.push_back({RLIMIT_NPROC, limits.pids->value});
  if (limits.cpu_milli) walls.notes.emplace_back("limits: cpu is not limited (needs a cgroup)");
}

void SetCommand(walls::WallPlan& walls, const TaskPlanInputs& in) {
  walls.arguments = in.command.arguments;
  const std::vector<std::string_view> host(in.command.environment.begin(),
                                           in.command.environment.end());
  walls.environment = policy::ResolveEnvironment(in.policy, host);
  const std::string& cwd = in.command.working_directory;
  const bool inside = VerdictOn(in.policy, cwd) != policy::PathVerdict::kHide &&
                      policy::IsWithin(cwd, in.policy.workspace);
  walls.working_directory = inside ? cwd : in.policy.workspace;
  policy::SetVariable(walls.environment, "PWD", walls.working_directory);
  policy::SetVariable(walls.environment, "HOME", in.caller.home.empty() ? "/tmp" : in.caller.home);
  policy::SetVariable(walls.environment, "SOMA_SANDBOX", "process");
  walls.umask = in.caller.umask;
  walls.terminal = in.command.terminal ? walls::TerminalKind::kPty : walls::TerminalKind::kNone;
}

}  // namespace soma::plan
