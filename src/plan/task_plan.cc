// SPDX-License-Identifier: Apache-2.0
#include "plan/task_plan.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "plan/second_path.h"
#include "plan/task_parts.h"
#include "plan/view.h"
#include "policy/decide.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/seccomp_profile.h"

namespace soma::plan {

namespace {

constexpr std::string_view kHostName = "soma";

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
    walls.notes.emplace_back(kNoReports);
  }
}

}  // namespace

Result<TaskPlan> BuildTaskPlan(const TaskPlanInputs& inputs) {
  SOMA_TRY(CheckEnforceable(inputs.policy));
  if (!inputs.machine.namespaces) return BuildSecondPath(inputs);
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
  if (!inputs.machine.may_notify) plan.missing.emplace_back(kNoReports);
  plan.limits_by_cgroup = inputs.machine.cgroup_writable;
  plan.view = std::move(view);
  return plan;
}

}  // namespace soma::plan
