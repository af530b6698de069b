// SPDX-License-Identifier: Apache-2.0
// CopyIn: a directory of the host becomes one inside a sandbox. It is unpacked there by the
// template's own tar, as an ordinary task of that user: whatever is in the stream can do no more
// than this user could.
#ifndef SOMA_SANDBOX_COPY_IN_H_
#define SOMA_SANDBOX_COPY_IN_H_

#include <string>

#include "aio/task.h"
#include "runtime/guest_link.h"
#include "workspace/workspace_tar.h"

namespace soma::sandbox {

// Makes `directory` inside (absolute, not there yet) as `user` and fills it. `link` and `tar` must
// stay until the end. What tar says about a failure is in the error.
aio::Task<void> CopyIn(runtime::GuestLink& link, workspace::WorkspaceTar& tar,
                       std::string directory, std::string user);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_COPY_IN_H_
