// SPDX-License-Identifier: Apache-2.0
// The Landlock domain of a strict task, at whatever ABI the kernel inside has.
#ifndef SOMA_GUEST_TASK_LANDLOCK_H_
#define SOMA_GUEST_TASK_LANDLOCK_H_

#include <optional>
#include <string>

#include "base/result.h"
#include "guest/accounts.h"
#include "sys/landlock.h"

namespace soma::guest {

// The task reads and executes everything that its user may, and writes below the user's home,
// `workdir` (unless that is "/"), /tmp, /var/tmp and /dev/shm, to the devices of /dev and to files
// of /proc. It makes no device anywhere. With ABI 6 it reaches no process and no abstract socket of
// another task by a signal or a connect; at every ABI it traces none.
//
// nullopt where the kernel has no Landlock: the other walls stand alone then.
Result<std::optional<sys::LandlockRuleset>> StrictLandlock(const User& user,
                                                           const std::string& workdir);

}  // namespace soma::guest

#endif  // SOMA_GUEST_TASK_LANDLOCK_H_
