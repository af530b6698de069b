// SPDX-License-Identifier: Apache-2.0
// The cgroups of one task, at either version. Internal; in the launcher.
#ifndef SOMA_WALLS_TASK_CGROUPS_H_
#define SOMA_WALLS_TASK_CGROUPS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {

class TaskCgroups {
 public:
  // Makes or finds the directories and sets the limits.
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
  Fd clone_into_;
  std::vector<Fd> attach_;
  std::vector<std::string> directories_;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_TASK_CGROUPS_H_
