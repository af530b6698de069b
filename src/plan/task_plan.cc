// SPDX-License-Identifier: Apache-2.0
#include "plan/task_plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "plan/view.h"
#include "policy/decide.h"
#include "policy/environment.h"
#include "policy/level.h"
#include "policy/model.h"
#include "policy/path_pattern.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/seccomp_profile.h"

namespace soma::plan {

namespace {

constexpr std::string_view kHostName = "soma";

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

void SetIdentity(walls::WallPlan& walls, const walls::RunIdentity& id) {
  walls.user_namespaces = {{{{id.uid, id.outside_uid, 1}}, {{id.gid, id.outside_gid, 1}}}};
  walls.namespaces = walls::Namespaces::kAll;
  walls.host_name = kHostName;
  walls.uid = id.uid;
  walls.gid = id.gid;
  if (!id.note.empty()) walls.notes.push_back(StrCat("identity: ", id.note));
}

std::optional<IdShift> ShiftFor(const walls::RunIdentity& id) {
  if (id.workspace_map.uids.empty()) return std::nullopt;
  return IdShift{id.outside_uid, id.outside_gid};
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

void SetFilters(walls::WallPlan& walls, View& view, const Machine& machine) {
  walls.landlock.enabled = machine.landlock_abi > 0;
  if (walls.landlock.enabled) {
    walls.landlock.rules = std::move(view.landlock);
  } else {
    walls.notes.emplace_back("landlock: this kernel has none; the mounts stand alone");
  }
  walls.seccomp.enabled = true;
  walls.seccomp.profile = walls::SeccompProfile::kStrict;
  if (machine.may_notify) {
    walls.seccomp.notify = walls::SeccompNotify::kMutating;
  } else {
    walls.notes.emplace_back(
        "reports: another supervisor is above this one, refusals are not listed");
  }
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

}  // namespace

Result<TaskPlan> BuildTaskPlan(const TaskPlanInputs& inputs) {
  SOMA_TRY(CheckEnforceable(inputs.policy));
  SOMA_ASSIGN(View view, BuildView({.policy = inputs.policy,
                                    .facts = inputs.facts,
                                    .home = inputs.caller.home,
                                    .ids = ShiftFor(inputs.caller.identity)}));
  TaskPlan plan;
  walls::WallPlan& walls = plan.walls;
  SetIdentity(walls, inputs.caller.identity);
  walls.mounts = std::move(view.mounts);
  walls.network = policy::MayUseNetwork(inputs.policy) ? walls::NetworkKind::kCapture
                                                       : walls::NetworkKind::kLoopback;
  SetLimits(walls, inputs);
  SetFilters(walls, view, inputs.machine);
  SetCommand(walls, inputs);
  plan.limits_by_cgroup = inputs.machine.cgroup_writable;
  plan.view = std::move(view);
  return plan;
}

}  // namespace soma::plan
