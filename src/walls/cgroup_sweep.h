// SPDX-License-Identifier: Apache-2.0
// What is left of task cgroups when a launcher and its keeper (walls/task_cgroups.h) were both
// killed: empty directories, which nobody else removes.
#ifndef SOMA_WALLS_CGROUP_SWEEP_H_
#define SOMA_WALLS_CGROUP_SWEEP_H_

#include <sys/types.h>

#include <string>

namespace soma::walls {

// The name of a task's cgroup whose launcher is `pid`.
std::string TaskCgroupName(pid_t pid);

// Removes the caller's own leftovers in the places where it would make such directories: named so,
// the caller's, without a process of that pid, a minute old (a launcher in another pid namespace
// may just be filling one) and empty. Never waits.
void SweepTaskCgroups();

}  // namespace soma::walls

#endif  // SOMA_WALLS_CGROUP_SWEEP_H_
