// SPDX-License-Identifier: Apache-2.0
// The figures of Stats: processors, memory, disk, as seen inside. The agent's cgroup counts where
// it can be read (a container), else the whole machine (a virtual machine).
#ifndef SOMA_GUEST_MACHINE_STATS_H_
#define SOMA_GUEST_MACHINE_STATS_H_

#include "wire/reply.h"

namespace soma::guest {

// All but tasks_running; what can't be read is 0.
wire::Stats ReadMachineStats();

}  // namespace soma::guest

#endif  // SOMA_GUEST_MACHINE_STATS_H_
