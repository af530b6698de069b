// SPDX-License-Identifier: Apache-2.0
// Slots: places for sandboxes, made ahead: ids, a cgroup, and a monitor that already sits in it and
// waits for its order. What is slow (starting a program, moving it into a cgroup) has happened
// before a request needs it.
#ifndef SOMA_LAUNCHER_SLOTS_H_
#define SOMA_LAUNCHER_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cgroup_tree.h"
#include "launcher/ids.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace soma::launcher {

// A slot with its waiting monitor. Destroying it ends the monitor (its link closes); the slot
// itself must be given back by Slots::Release once its cgroup is gone.
struct ReadySlot {
  std::uint32_t slot = 0;
  SlotIds ids;
  SlotCgroup cgroup;
  int id_namespace = -1;  // borrowed from Slots; for id-mapped mounts
  sys::Process monitor;
  sys::ProcessIdentity monitor_identity;
  Fd link;
};

class Slots {
 public:
  struct Options {
    std::string monitor_program;
    std::size_t ready_wanted = 2;
    std::size_t slots_max = 256;
    // Ids of its own for each slot; an ordinary user has one id only.
    bool own_ids = true;
  };
  Slots(Options options, const CgroupTree& cgroups)
      : options_(std::move(options)), cgroups_(cgroups) {}

  // A ready one, else one made now. kResourceExhausted when all are in use.
  Result<ReadySlot> Take();
  bool has_ready() const { return !ready_.empty(); }
  // Makes one that is missing; false when none is. Slow, for idle moments.
  Result<bool> FillOne();
  // Ready slots may not be fewer than this from now on, within slots_max.
  void Want(std::size_t ready) { options_.ready_wanted = ready; }

  // A sandbox of an earlier worker lives there.
  void MarkUsed(std::uint32_t slot) { used_.insert(slot); }
  // Nothing of it is left.
  void Release(std::uint32_t slot) {
    used_.erase(slot);
    id_namespaces_.erase(slot);
  }
  std::size_t used() const { return used_.size() - ready_.size(); }
  std::size_t slots_max() const { return options_.slots_max; }
  // Ends all waiting monitors and gives their slots, for clean-up by the caller.
  std::vector<ReadySlot> TakeAllReady() { return std::move(ready_); }

 private:
  Result<ReadySlot> Make();

  Options options_;
  const CgroupTree& cgroups_;
  std::set<std::uint32_t> used_;
  std::vector<ReadySlot> ready_;
  std::map<std::uint32_t, Fd> id_namespaces_;
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_SLOTS_H_
