// SPDX-License-Identifier: Apache-2.0
// What the worker keeps of root. It reads messages of a server that may be broken into, so it has
// the capabilities that building walls takes and no others, and the seccomp profile `launcher`.
#ifndef SOMA_LAUNCHER_LOCK_DOWN_H_
#define SOMA_LAUNCHER_LOCK_DOWN_H_

#include "base/result.h"

namespace soma::launcher {

// For this process and all that it starts, for ever; before the first thread. Root keeps only the
// listed capabilities; an ordinary user, who has none, gets no_new_privs, which the filter needs.
Status LockDownWorker();

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_LOCK_DOWN_H_
