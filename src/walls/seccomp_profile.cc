// SPDX-License-Identifier: Apache-2.0
#include "walls/seccomp_profile.h"

#include <linux/filter.h>

#include <optional>
#include <string_view>

#include "base/check.h"
#include "sys/seccomp.h"

namespace soma::walls {
namespace {

#include "seccomp/alone.inc"
#include "seccomp/alone_notify.inc"
#include "seccomp/launcher.inc"
#include "seccomp/monitor.inc"
#include "seccomp/rooted.inc"
#include "seccomp/rooted_notify.inc"
#include "seccomp/server.inc"
#include "seccomp/strict.inc"
#include "seccomp/strict_notify.inc"
#include "seccomp/vmm.inc"

constexpr struct {
  SeccompProfile profile;
  std::string_view name;
} kNames[] = {
    {SeccompProfile::kStrict, "strict"},     {SeccompProfile::kRooted, "rooted"},
    {SeccompProfile::kVmm, "vmm"},           {SeccompProfile::kServer, "server"},
    {SeccompProfile::kLauncher, "launcher"}, {SeccompProfile::kMonitor, "monitor"},
    {SeccompProfile::kAlone, "alone"},
};

}  // namespace

sys::SeccompProgram ProgramFor(SeccompProfile profile, SeccompNotify notify) {
  const bool notifies = notify == SeccompNotify::kMutating;
  switch (profile) {
    case SeccompProfile::kStrict:
      if (notifies) return {kStrictNotifyInstructions};
      return {kStrictInstructions};
    case SeccompProfile::kRooted:
      if (notifies) return {kRootedNotifyInstructions};
      return {kRootedInstructions};
    case SeccompProfile::kVmm:
      SOMA_CHECK(!notifies);
      return {kVmmInstructions};
    case SeccompProfile::kServer:
      SOMA_CHECK(!notifies);
      return {kServerInstructions};
    case SeccompProfile::kAlone:
      if (notifies) return {kAloneNotifyInstructions};
      return {kAloneInstructions};
    case SeccompProfile::kLauncher:
      SOMA_CHECK(!notifies);
      return {kLauncherInstructions};
    case SeccompProfile::kMonitor:
      SOMA_CHECK(!notifies);
      return {kMonitorInstructions};
  }
  SOMA_CHECK(false && "no such profile");
}

std::string_view SeccompProfileName(SeccompProfile profile) {
  for (const auto& entry : kNames) {
    if (entry.profile == profile) return entry.name;
  }
  return "unknown";
}

std::optional<SeccompProfile> ParseSeccompProfile(std::string_view name) {
  for (const auto& entry : kNames) {
    if (entry.name == name) return entry.profile;
  }
  return std::nullopt;
}

}  // namespace soma::walls
