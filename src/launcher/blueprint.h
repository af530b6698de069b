// SPDX-License-Identifier: Apache-2.0
// Blueprint: what one sandbox is to be, ready for its monitor's order: the walls, the descriptors
// that their slots name, and the limits of its cgroup. Internal to this room.
#ifndef SOMA_LAUNCHER_BLUEPRINT_H_
#define SOMA_LAUNCHER_BLUEPRINT_H_

#include <utility>
#include <vector>

#include "control/messages.h"
#include "sys/fd.h"
#include "walls/plan.h"

namespace soma::launcher {

struct Blueprint {
  walls::WallPlan plan;
  // Slot i of the plan is slots[i]: one of `owned`, or one that the worker keeps.
  std::vector<int> slots;
  std::vector<Fd> owned;
  control::Limits limits;
  // The mount of the sandbox's disk, where there is one.
  Fd disk;

  void AddOwned(Fd fd) {
    slots.push_back(fd.get());
    owned.push_back(std::move(fd));
  }
  void AddBorrowed(const Fd& fd) { slots.push_back(fd.get()); }
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_BLUEPRINT_H_
