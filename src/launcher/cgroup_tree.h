// SPDX-License-Identifier: Apache-2.0
// The launcher's cgroups: one directory of its own in each hierarchy, in it one directory a slot
// and one for the processes that hold no sandbox. Version 2, version 1, or both at once (v1
// controllers beside an empty v2 hierarchy, whose freeze and kill files work all the same).
//
// Nobody but the launcher writes here: sandboxes never see a cgroup file system. Sources:
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the kernel.
#ifndef SOMA_LAUNCHER_CGROUP_TREE_H_
#define SOMA_LAUNCHER_CGROUP_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/messages.h"
#include "sys/counter_file.h"

namespace soma::launcher {

// A launcher that isn't in the root of a v2 hierarchy moves itself here, so that it may hand
// controllers down ("no internal processes").
inline constexpr std::string_view kLauncherLeaf = "/soma-launcher";

enum class CgroupVersion : std::uint8_t { kV1, kV2 };

struct Hierarchy {
  CgroupVersion version = CgroupVersion::kV2;
  bool memory = false;
  bool pids = false;
  bool cpu = false;
  std::string directory;  // the launcher's own directory in it
};

// One slot's directories, one a hierarchy.
class SlotCgroup {
 public:
  explicit SlotCgroup(std::vector<Hierarchy> places) : places_(std::move(places)) {}

  // Moves a process in. Slow (milliseconds) unless another migration was just before: never on the
  // way of a request (measured: an RCU grace period, 6.9 ms).
  Status Enter(pid_t pid) const;
  Status SetLimits(const control::Limits& limits) const;
  // Waits up to 100 ms until every process stands still. kUnimplemented without a v2 hierarchy.
  Status Freeze() const;
  Status Thaw() const;
  // SIGKILL to everything in it, frozen or not.
  void Kill() const;
  // How often its limits were hit so far.
  sys::CgroupHits Hits() const;
  control::SandboxUsage Usage() const;
  // True when the directories are gone; false while processes are still leaving.
  bool Remove() const;

 private:
  std::vector<Hierarchy> places_;
};

class CgroupTree {
 public:
  // Finds the hierarchies and makes `name` below the launcher's own cgroup in each. Fails when
  // memory, process count or CPU can't be limited: then no sandbox could be.
  static Result<CgroupTree> Create(std::string_view name);
  // Without any hierarchy: every slot is empty, every limit is somebody else's (rlimits), freezing
  // is kUnimplemented. For ordinary users.
  static CgroupTree None() { return CgroupTree({}); }

  Result<SlotCgroup> MakeSlot(std::uint32_t slot) const;
  // As it would be, without making anything: for what an earlier worker left.
  SlotCgroup SlotAt(std::uint32_t slot) const;
  // The slots that have a directory in any hierarchy.
  std::vector<std::uint32_t> Existing() const;
  // Out of a slot, into the directory of the processes that hold no sandbox. Slow, as Enter.
  Status MoveHome(pid_t pid) const;
  // Everything that Create made, if no slot is left in it.
  void RemoveAll() const;

 private:
  explicit CgroupTree(std::vector<Hierarchy> hierarchies) : hierarchies_(std::move(hierarchies)) {}
  std::vector<Hierarchy> hierarchies_;
};

// Which hierarchies there are, from the text of /proc/self/mountinfo and /proc/self/cgroup; pure.
// `directory` is the launcher's own cgroup as a path.
std::vector<Hierarchy> FindHierarchies(std::string_view mountinfo, std::string_view own_cgroups);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_CGROUP_TREE_H_
