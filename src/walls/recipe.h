// SPDX-License-Identifier: Apache-2.0
// Recipe: a WallPlan made ready for the time between fork and exec, where nothing may allocate: C
// strings, arrays, and the detached mounts that only the launcher has the privilege to make.
//
// Internal to this room. Made by the launcher, read by its forks.
#ifndef SOMA_WALLS_RECIPE_H_
#define SOMA_WALLS_RECIPE_H_

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/cpu_affinity.h"
#include "sys/fd.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {

struct MountRecipe {
  Fd prepared;                  // a detached mount; empty: made by the task itself
  std::string source;           // kBind without `prepared`: what the task opens
  dev_t device = 0;             // … and what it must find there when a slot stood for it
  ino_t inode = 0;              //     (0: not checked)
  bool covered_by_own = false;  // the target lies on a file system that is this task's own
  bool has_items_below = false;
  std::string size_text;  // kTmpfs
  std::string inodes_text;
  std::vector<Fd> layers;  // kOverlay: opened by the task, numbers fixed here
  Fd mount;                // the task's handle on what it attached
};

struct Recipe {
  const WallPlan* plan = nullptr;
  int channel = -1;       // the task's end
  int launcher_end = -1;  // the other one, to be closed in the task

  bool privileged = false;            // CAP_SYS_ADMIN here: sources are opened by the launcher
  bool maps_by_launcher = false;      // more than the own id
  bool await_go = false;              // the launcher has something to do first
  std::vector<std::string> uid_maps;  // a text for each user namespace
  std::vector<std::string> gid_maps;
  bool set_groups = false;

  std::vector<MountRecipe> mounts;

  std::vector<const char*> arguments;    // ends with nullptr
  std::vector<const char*> environment;  // ends with nullptr
  std::vector<std::string> candidates;   // paths to execute, in order
  int execute_descriptor = -1;

  struct Pass {
    int from = -1;
    int to = -1;
  };
  std::vector<Pass> passes;

  sys::StayOnThisCpu* stay = nullptr;  // the launcher's; released by the command's process
  sigset_t signal_mask{};              // the launcher's own, for the command
};

// Opens sources, checks slots. `plan` and the result outlive each other's use by the caller.
Result<Recipe> MakeRecipe(const WallPlan& plan, const LaunchOptions& options);

// A user namespace with these maps, as a descriptor for id-mapped mounts. Needs the privilege over
// the outside ids.
Result<Fd> MakeMappingNamespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids);

// "0 1000 1\n…" for /proc/PID/{u,g}id_map.
std::string IdMapText(const std::vector<IdRange>& ranges);
// Writes both maps of the process `pid` (0: the caller) in one go. 0 or an errno;
// async-signal-safe.
int WriteIdMaps(pid_t pid, const std::string& uid_map, const std::string& gid_map,
                bool deny_setgroups) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_RECIPE_H_
