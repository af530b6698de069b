// SPDX-License-Identifier: Apache-2.0
#include "plan/second_path.h"

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "plan/task_parts.h"
#include "plan/task_plan.h"
#include "plan/view.h"
#include "policy/decide.h"
#include "policy/environment.h"
#include "policy/level.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "policy/path_pattern.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/seccomp_profile.h"

namespace soma::plan {

namespace {

using policy::PathFact;
using policy::PathKind;
using policy::PathVerdict;
using policy::VerdictWord;

constexpr int kAbiWithScopes = 6;  // landlock(7)

std::unexpected<Error> Refuse(const Machine& machine, std::string_view what) {
  return Fail(Errc::kFailedPrecondition,
              StrCat(what, " can't be kept without namespaces, and this machine refuses them (",
                     machine.namespaces_lack, "; soma doctor has the remedy)"));
}

// The first network rule that allows something, for the message.
std::string NetworkRuleText(const policy::Policy& policy) {
  for (const policy::NetworkRules& layer : policy.network) {
    for (const policy::NetworkRule& rule : layer.rules) {
      if (rule.allow)
        return StrCat("the network rule \"", EscapeForTerminal(rule.text), "\" (",
                      rule.origin.ToText(), ")");
    }
  }
  return "network default \"allow\"";
}

// What the policy gives, as paths whose rights Landlock adds up.
class Grants {
 public:
  explicit Grants(const TaskPlanInputs& in) : in_(in) { view_.effective = in.policy; }

  Status Collect() {
    for (const PathFact& fact : in_.facts.root) {
      const PathVerdict verdict = VerdictOn(in_.policy, fact.path);
      if (verdict != PathVerdict::kHide && fact.kind != PathKind::kMissing && !HasRuleFor(fact))
        given_.push_back({fact.real, verdict});
    }
    for (const PathFact& fact : in_.facts.rules) Take(fact);
    for (const PathFact& fact : in_.facts.rules) SOMA_TRY(CheckNothingAbove(fact));
    for (policy::FilesystemRules& layer : view_.effective.filesystem) {
      layer.rules.push_back(
          {PathVerdict::kWrite, in_.private_place, {"private to the sandbox", 0}});
    }
    return {};
  }

  std::vector<std::string> Of(PathVerdict verdict) const {
    std::vector<std::string> out;
    for (const Given& given : given_) {
      if (given.verdict == verdict && given.path != in_.policy.workspace) out.push_back(given.path);
    }
    return out;
  }
  View TakeView() { return std::move(view_); }

 private:
  struct Given {
    std::string path;
    PathVerdict verdict;
  };

  bool HasRuleFor(const PathFact& root) const {
    return std::ranges::any_of(in_.facts.rules,
                               [&root](const PathFact& fact) { return fact.path == root.path; });
  }

  void Take(const PathFact& fact) {
    const PathVerdict verdict = VerdictOn(in_.policy, fact.path);
    if (verdict == PathVerdict::kHide) {
      const policy::Decision decision = DecidePath(in_.policy, fact.path, policy::Access::kRead);
      view_.hidden.push_back({fact.path, decision.origin});
      view_.effective.filesystem.front().rules.push_back(
          {PathVerdict::kHide, fact.real, decision.origin});
    } else if (LeadsThroughWritable(in_.policy, fact)) {
      view_.notices.push_back(PlantedNotice(fact));
    } else {
      given_.push_back({fact.real, verdict});
    }
  }

  Status CheckNothingAbove(const PathFact& fact) const {
    const PathVerdict verdict = VerdictOn(in_.policy, fact.path);
    for (const Given& given : given_) {
      if (given.verdict <= verdict || !policy::IsWithin(fact.real, given.path)) continue;
      const policy::Decision decision = DecidePath(
          in_.policy, fact.path,
          verdict == PathVerdict::kHide ? policy::Access::kRead : policy::Access::kWrite);
      return Refuse(in_.machine,
                    StrCat(VerdictWord(verdict), " \"", EscapeForTerminal(fact.path), "\" (",
                           decision.origin.ToText(), ") below ", VerdictWord(given.verdict), " \"",
                           EscapeForTerminal(given.path), "\""));
    }
    return {};
  }

  const TaskPlanInputs& in_;
  View view_;
  std::vector<Given> given_;
};

Status CheckFloor(const TaskPlanInputs& in) {
  const auto& minimum = in.policy.isolation.minimum;
  if (Satisfies(minimum.value, policy::Level::kProcess)) {
    return Refuse(in.machine, StrCat("minimum = \"", LevelName(minimum.value), "\" (",
                                     minimum.origin.ToText(), ")"));
  }
  if (in.machine.landlock_abi == 0) {
    return Fail(Errc::kFailedPrecondition,
                StrCat("level \"process\" needs namespaces or Landlock, and this machine has "
                       "neither (namespaces: ",
                       in.machine.namespaces_lack, ")"));
  }
  if (MayUseNetwork(in.policy)) return Refuse(in.machine, NetworkRuleText(in.policy));
  return {};
}

std::vector<std::string> MissingWalls(const Machine& machine) {
  std::vector<std::string> out = {
      StrCat("second path: no namespaces here (", machine.namespaces_lack,
             "); Landlock, seccomp and limits only"),
      "missing: own file tree: names, sizes and times of all files can be seen, not what is in "
      "them; modes and owners of your other files can be changed in a race with our check",
      "missing: own network: no sockets at all, not even to itself",
      "missing: own /tmp and home: private directories stand for them in TMPDIR and HOME"};
  out.emplace_back(machine.landlock_abi >= kAbiWithScopes
                       ? "missing: own processes: yours can be seen, not signalled"
                       : "missing: own processes: yours can be seen and signalled (this kernel's "
                         "Landlock can't stop that)");
  return out;
}

}  // namespace

Result<TaskPlan> BuildSecondPath(const TaskPlanInputs& in) {
  SOMA_TRY(CheckFloor(in));
  Grants grants(in);
  SOMA_TRY(grants.Collect());
  walls::ProcessWallsInput input;
  // There is no user namespace: inside and outside are the same.
  input.identity = {.uid = in.caller.identity.outside_uid,
                    .gid = in.caller.identity.outside_gid,
                    .outside_uid = in.caller.identity.outside_uid,
                    .outside_gid = in.caller.identity.outside_gid,
                    .workspace_map = {},
                    .note = in.caller.identity.note};
  input.workspace = in.policy.workspace;
  input.workspace_read_only = VerdictOn(in.policy, in.policy.workspace) != PathVerdict::kWrite;
  input.readable = grants.Of(PathVerdict::kRead);
  input.writable = grants.Of(PathVerdict::kWrite);
  input.writable.push_back(in.private_place);
  input.notify =
      in.machine.may_notify ? walls::SeccompNotify::kMutating : walls::SeccompNotify::kNone;
  TaskPlan plan;
  plan.walls = ProcessWallsWithoutNamespaces(input);
  SetLimits(plan.walls, in);
  SetCommand(plan.walls, in);
  policy::SetVariable(plan.walls.environment, "HOME", in.private_place + "/home");
  policy::SetVariable(plan.walls.environment, "TMPDIR", in.private_place + "/tmp");
  plan.walls.terminal = walls::TerminalKind::kNone;  // there is no /dev/pts of its own
  plan.missing = MissingWalls(in.machine);
  if (!in.machine.may_notify) plan.missing.emplace_back(kNoReports);
  plan.walls.notes.insert(plan.walls.notes.end(), plan.missing.begin(), plan.missing.end());
  plan.limits_by_cgroup = in.machine.cgroup_writable;
  plan.view = grants.TakeView();
  plan.view.scratch = {in.private_place};
  return plan;
}

}  // namespace soma::plan
