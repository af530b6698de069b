// SPDX-License-Identifier: Apache-2.0
// The cgroups of one task, at either version. Internal; in the launcher.
//
// Version 2: a directory beside the launcher's own (the kernel gives no controllers to one that
// holds processes), and the task is cloned right into it. Version 1: one directory in each
// hierarchy, and the task is moved; that can take milliseconds (an RCU grace period). A process of
// our own, the keeper, removes the directories if the launcher is killed.
#ifndef SOMA_WALLS_TASK_CGROUPS_H_
#define SOMA_WALLS_TASK_CGROUPS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {

// Where the caller is in one hierarchy.
struct CgroupPlace {
  bool unified = false;                  // version 2
  bool at_root = false;                  // of the hierarchy
  std::vector<std::string> controllers;  // version 1: what this hierarchy controls
  std::string directory;                 // the caller's own
};
// From the texts of /proc/self/cgroup and /proc/self/mountinfo. Hierarchies that aren't mounted are
// left out.
std::vector<CgroupPlace> ParseCgroupPlaces(std::string_view cgroup, std::string_view mountinfo);

// The directories below which a task's are made for this process.
std::vector<std::string> TaskCgroupBases();

class TaskCgroups {
 public:
  // Destroying it without Remove leaves the directories to the keeper: it never waits.

  // Makes or finds the directories and sets the limits. After an error nothing is left.
  Status Prepare(const CgroupPlan& plan, const LaunchOptions& options);
  // The v2 directory to clone into, or -1.
  int CloneInto() const { return clone_into_.get(); }
  bool NeedsAttach() const { return !attach_.empty(); }
  // Moves the process in where cloning into isn't possible (v1).
  Status Attach(pid_t pid);
  // Removes what Prepare made. The processes must be gone.
  void Remove();
  const std::vector<std::string>& directories() const { return directories_; }

 private:
  Status Create(const CgroupPlan& plan);
  Status CreateUnified(const CgroupPlan& plan, const CgroupPlace& place);
  Status CreateVersion1(const CgroupPlan& plan, const std::vector<CgroupPlace>& places);
  Status Join(const CgroupPlan& plan, const LaunchOptions& options);
  Status StartKeeper(const CgroupPlan& plan, const std::vector<CgroupPlace>& places);

  Fd clone_into_;
  std::vector<Fd> attach_;
  std::vector<std::string> directories_;
  std::optional<sys::Process> keeper_;
  Fd keeper_pipe_;  // its closing is what the keeper waits for
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_TASK_CGROUPS_H_
