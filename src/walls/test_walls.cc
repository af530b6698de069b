// SPDX-License-Identifier: Apache-2.0
#include "walls/test_walls.h"

#if SOMA_TEST_SWITCHES

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_switch.h"
#include "walls/plan.h"

namespace soma::walls {
namespace {

void Remove(WallPlan& plan, Namespaces one) {
  plan.namespaces =
      static_cast<Namespaces>(static_cast<unsigned>(plan.namespaces) & ~static_cast<unsigned>(one));
}

void SwitchNamespacesOff(WallPlan& plan) {
  constexpr std::pair<std::string_view, Namespaces> kOthers[] = {
      {"pid", Namespaces::kPid},
      {"ipc", Namespaces::kIpc},
      {"cgroup-namespace", Namespaces::kCgroup}};
  for (const auto& [name, one] : kOthers) {
    if (WithoutWall(name)) Remove(plan, one);
  }
  // An own /proc needs an own pid namespace; without it the host's is what an attacker sees.
  for (MountItem& item : plan.mounts) {
    if (WithoutWall("pid") && item.kind == MountKind::kProc) {
      item = {.kind = MountKind::kBind, .target = item.target, .source = "/proc"};
    }
  }
  if (WithoutWall("uts")) {
    Remove(plan, Namespaces::kUts);
    plan.host_name.clear();
  }
  if (WithoutWall("network")) {
    Remove(plan, Namespaces::kNetwork);
    plan.network = NetworkKind::kHost;
  }
  // The host's whole tree in place of the view, writable.
  if (WithoutWall("mount") && !plan.mounts.empty()) plan.mounts.clear();
  if (WithoutWall("user")) {
    plan.user_namespaces.clear();
    for (MountItem& item : plan.mounts) item.id_map = {};
  }
}

}  // namespace

void SwitchWallsOff(WallPlan& plan) {
  SwitchNamespacesOff(plan);
  if (WithoutWall("landlock")) plan.landlock.enabled = false;
  if (WithoutWall("seccomp")) plan.seccomp = {};
  if (WithoutWall("no-new-privs")) plan.no_new_privs = false;
  if (WithoutWall("limits")) plan.limits.clear();
  if (WithoutWall("capabilities")) {
    plan.capability_bounding = ~std::uint64_t{0};
    plan.keep_capabilities = plan.uid == 0;
  }
  if (WithoutWall("hide")) {
    std::erase_if(plan.mounts, [](const MountItem& item) { return item.kind == MountKind::kHide; });
  }
  for (MountItem& item : plan.mounts) {
    if (WithoutWall("read-only")) item.read_only = false;
    if (WithoutWall("nosuid")) item.allow_suid = true;
  }
}

}  // namespace soma::walls

#endif  // SOMA_TEST_SWITCHES
