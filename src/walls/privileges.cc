// SPDX-License-Identifier: Apache-2.0
#include "walls/privileges.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include "sys/capability_set.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "sys/process.h"
#include "sys/seccomp.h"
#include "sys/session_keyring.h"
#include "walls/plan.h"
#include "walls/recipe.h"
#include "walls/seccomp_profile.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

StepFailure At(Step step, int errno_value, std::uint32_t item = 0) {
  if (errno_value == 0) return {};
  return {.step = step, .item = item, .errno_value = errno_value};
}
bool Failed(const StepFailure& failure) { return failure.step != Step::kNone; }

// The raw calls: glibc's wrappers tell all threads, and there are none.
int SetIds(std::uint32_t uid, std::uint32_t gid) {
  if (::getegid() != gid || ::getgid() != gid) {
    if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return errno;
  }
  if (::geteuid() != uid || ::getuid() != uid) {
    if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return errno;
  }
  return 0;
}

int SetGroups(const WallPlan& plan) {
  return ::syscall(SYS_setgroups, plan.groups.size(), plan.groups.data()) == 0 ? 0 : errno;
}

// Keeping capabilities across the change of ids is only wanted for the steps in between.
int TakeIdentity(const Recipe& recipe) {
  const WallPlan& plan = *recipe.plan;
  if (recipe.set_groups) {
    const int grouped = SetGroups(plan);
    if (grouped != 0) return grouped;
  }
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return errno;
  const std::uint64_t had = sys::EffectiveCapabilities();
  const int changed = SetIds(plan.uid, plan.gid);
  if (changed != 0) return changed;
  // Permitted ones stay, effective ones were cleared if the uid left 0.
  const int kept = had == 0 ? 0 : sys::SetCapabilities(had);
  if (kept != 0) return kept;
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) return errno;
  // A change of ids takes it away (prctl(2)).
  return sys::DieWithParent(SIGKILL);
}

int AllowRule(sys::LandlockRuleset& rules, const LandlockRule& rule) {
  const Fd path(::open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  if (!path) return errno == ENOENT && rule.optional ? 0 : errno;
  const auto allowed = rules.AllowPath(path.get(), rule.rights);
  return allowed ? 0 : std::max(1, allowed.error().errno_value());
}

StepFailure ApplyLandlock(const LandlockPlan& plan) {
  const auto count = static_cast<std::uint32_t>(plan.rules.size());
  if (sys::LandlockAbi() < static_cast<int>(plan.abi_min)) {
    return At(Step::kLandlock, EOPNOTSUPP, count);
  }
  const std::uint64_t scoped =
      (plan.scope_signals ? std::uint64_t{sys::kLandlockScopeSignal} : 0) |
      (plan.scope_abstract_sockets ? std::uint64_t{sys::kLandlockScopeAbstractUnix} : 0);
  auto rules = sys::LandlockRuleset::Create({.fs = sys::kLandlockAllFs, .scoped = scoped});
  if (!rules) return At(Step::kLandlock, std::max(1, rules.error().errno_value()), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const int allowed = AllowRule(*rules, plan.rules[i]);
    if (allowed != 0) return At(Step::kLandlock, allowed, i);
  }
  return At(Step::kLandlock, sys::LandlockRestrictSelf(rules->fd().get()), count);
}

StepFailure ApplySeccomp(const SeccompPlan& plan, Fd& listener) {
  const sys::SeccompProgram program = ProgramFor(plan.profile, plan.notify);
  if (plan.notify == SeccompNotify::kNone) return At(Step::kSeccomp, sys::LoadSeccomp(program));
  sys::SeccompListener loaded = sys::LoadSeccompWithListener(program);
  listener = std::move(loaded.listener);
  return At(Step::kSeccomp, loaded.error);
}

}  // namespace

StepFailure BecomeNamespaceOwner(const UserNamespace& user, bool set_groups) noexcept {
  const auto has_root = [](const std::vector<IdRange>& ranges) {
    return std::ranges::any_of(ranges, [](const IdRange& range) { return range.inside == 0; });
  };
  // Supplementary groups of the caller are ids outside: away with them as soon as it is allowed.
  if (set_groups && ::syscall(SYS_setgroups, 0, nullptr) != 0) return At(Step::kIdentity, errno);
  const std::uint32_t uid = has_root(user.uids) ? 0 : user.uids.front().inside;
  const std::uint32_t gid = has_root(user.gids) ? 0 : user.gids.front().inside;
  const int changed = SetIds(uid, gid);
  return At(Step::kIdentity, changed);
}

StepFailure SetLimits(const WallPlan& plan) noexcept {
  for (std::uint32_t i = 0; i < plan.limits.size(); ++i) {
    const auto resource = static_cast<__rlimit_resource_t>(plan.limits[i].resource);
    rlimit limit{.rlim_cur = plan.limits[i].value, .rlim_max = plan.limits[i].value};
    if (::setrlimit(resource, &limit) == 0) continue;
    if (errno != EPERM || ::getrlimit(resource, &limit) != 0) return At(Step::kLimits, errno, i);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, plan.limits[i].value);
    limit.rlim_max = limit.rlim_cur;
    if (::setrlimit(resource, &limit) != 0) return At(Step::kLimits, errno, i);
  }
  return {};
}

StepFailure GiveUpPrivileges(const Recipe& recipe, Fd& listener) noexcept {
  const WallPlan& plan = *recipe.plan;
  StepFailure failure =
      At(Step::kBoundCapabilities, sys::BoundCapabilities(plan.capability_bounding));
  if (Failed(failure)) return failure;
  failure = At(Step::kIdentity, TakeIdentity(recipe));
  if (Failed(failure)) return failure;
  sys::LeaveSessionKeyring();
  if (plan.no_new_privs && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return At(Step::kNoNewPrivileges, errno);
  }
  if (plan.landlock.enabled) {
    failure = ApplyLandlock(plan.landlock);
    if (Failed(failure)) return failure;
  }
  // Without no_new_privs the filter needs CAP_SYS_ADMIN, so the capabilities go last; the profiles
  // allow capset for that.
  if (plan.seccomp.enabled) {
    failure = ApplySeccomp(plan.seccomp, listener);
    if (Failed(failure)) return failure;
  }
  const std::uint64_t keep =
      plan.keep_capabilities ? plan.capability_bounding & sys::EffectiveCapabilities() : 0;
  return At(Step::kDropCapabilities, sys::SetCapabilities(keep));
}

}  // namespace soma::walls
