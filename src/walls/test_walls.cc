// SPDX-License-Identifier: Apache-2.0
#include "walls/test_walls.h"

#if SOMA_TEST_SWITCHES

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_switch.h"
#include "walls/plan.h"

namespace soma::walls {
namespace {

struct Switch {
  std::string_view name;
  void (*turn_off)(WallPlan& plan);
};

template <Namespaces kOne>
void Share(WallPlan& plan) {
  plan.namespaces = static_cast<Namespaces>(static_cast<unsigned>(plan.namespaces) &
                                            ~static_cast<unsigned>(kOne));
}

// An own /proc needs an own pid namespace; without it the host's is what an attacker sees.
void SharePids(WallPlan& plan) {
  Share<Namespaces::kPid>(plan);
  for (MountItem& item : plan.mounts) {
    if (item.kind == MountKind::kProc) {
      item = {.kind = MountKind::kBind, .target = item.target, .source = "/proc"};
    }
  }
}

// The one table: what is not in it can't be switched off.
constexpr Switch kSwitches[] = {
    {"user",
     [](WallPlan& plan) {
       plan.user_namespaces.clear();
       for (MountItem& item : plan.mounts) item.id_map = {};
     }},
    // The host's whole tree in place of the view, writable.
    {"mount", [](WallPlan& plan) { plan.mounts.clear(); }},
    {"pid", SharePids},
    {"network",
     [](WallPlan& plan) {
       Share<Namespaces::kNetwork>(plan);
       plan.network = NetworkKind::kHost;
     }},
    {"ipc", Share<Namespaces::kIpc>},
    {"uts",
     [](WallPlan& plan) {
       Share<Namespaces::kUts>(plan);
       plan.host_name.clear();
     }},
    {"cgroup-namespace", Share<Namespaces::kCgroup>},
    {"landlock", [](WallPlan& plan) { plan.landlock.enabled = false; }},
    {"seccomp", [](WallPlan& plan) { plan.seccomp = {}; }},
    {"capabilities",
     [](WallPlan& plan) {
       plan.capability_bounding = ~std::uint64_t{0};
       plan.keep_capabilities = plan.uid == 0;
     }},
    {"no-new-privs", [](WallPlan& plan) { plan.no_new_privs = false; }},
    {"limits", [](WallPlan& plan) { plan.limits.clear(); }},
    {"hide",
     [](WallPlan& plan) {
       std::erase_if(plan.mounts,
                     [](const MountItem& item) { return item.kind == MountKind::kHide; });
     }},
    // A plan that binds a place writable below a writable bind does so to keep it from being
    // renamed (plan/view.h).
    {"pins",
     [](WallPlan& plan) {
       const auto is_writable_bind = [](const MountItem& item) {
         return item.kind == MountKind::kBind && !item.read_only && !item.source.empty();
       };
       std::vector<MountItem> kept;
       for (const MountItem& item : plan.mounts) {
         const bool is_pin =
             is_writable_bind(item) && std::ranges::any_of(kept, [&](const MountItem& above) {
               return is_writable_bind(above) && item.target.starts_with(above.target + "/") &&
                      item.source == above.source + item.target.substr(above.target.size());
             });
         if (!is_pin) kept.push_back(item);
       }
       plan.mounts = std::move(kept);
     }},
    {"read-only",
     [](WallPlan& plan) {
       for (MountItem& item : plan.mounts) item.read_only = false;
     }},
    {"nosuid",
     [](WallPlan& plan) {
       for (MountItem& item : plan.mounts) item.allow_suid = true;
     }},
};

}  // namespace

void SwitchWallsOff(WallPlan& plan) {
  for (const Switch& one : kSwitches) {
    if (WithoutWall(one.name)) one.turn_off(plan);
  }
}

std::vector<std::string_view> SwitchNames() {
  std::vector<std::string_view> names;
  for (const Switch& one : kSwitches) names.push_back(one.name);
  return names;
}

}  // namespace soma::walls

#endif  // SOMA_TEST_SWITCHES
