// SPDX-License-Identifier: Apache-2.0
// CopyIn: a tar stream of a directory of the host becomes one inside a sandbox. It is unpacked
// there by the template's own tar, as an ordinary task of that user: whatever is in the stream can
// do no more than this user could.
#ifndef SOMA_SANDBOX_COPY_IN_H_
#define SOMA_SANDBOX_COPY_IN_H_

#include <string>

#include "aio/loop.h"
#include "aio/task.h"
#include "runtime/guest_link.h"
#include "sys/fd.h"

namespace soma::sandbox {

// Makes `directory` inside (absolute, not there yet) as `user` and fills it with what comes from
// `pieces`, as sandbox/foreground_message.h says. `loop`, `link` and `pieces` must stay until the
// end. What tar says about a failure is in the error; kCancelled when the stream has no end.
aio::Task<void> CopyIn(aio::Loop& loop, runtime::GuestLink& link, const Fd& pieces,
                       std::string directory, std::string user);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_COPY_IN_H_
