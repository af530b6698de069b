// SPDX-License-Identifier: Apache-2.0
// The attendant: the half of a foreground run (sandbox/foreground_run.h) that parses what the guest
// says and answers for its network. A process of its own that holds nothing of its caller's but the
// descriptors here and the standard streams: it becomes the service's user (sys/service_user.h)
// where root has one, has no capability, no_new_privs and the seccomp profile `server`, and ends
// with its caller. What else it needs it asks the caller for (sandbox/foreground_message.h).
#ifndef SOMA_SANDBOX_FOREGROUND_ATTENDANT_H_
#define SOMA_SANDBOX_FOREGROUND_ATTENDANT_H_

#include <sys/types.h>

#include "base/clock.h"
#include "sandbox/foreground_run.h"
#include "sys/fd.h"

namespace soma::sandbox {

struct AttendantDescriptors {
  Fd control;  // SOCK_SEQPACKET, non-blocking: messages
  Fd copy;     // SOCK_SEQPACKET, non-blocking: the workspace's pieces
  Fd journal;  // the journal's directory: the path to it may be closed to the attendant
};

// In a child that `caller` has just forked. Closes every descriptor but these and the standard
// streams.
[[noreturn]] void Attend(const ForegroundOptions& options, AttendantDescriptors descriptors,
                         pid_t caller, Clock& clock, Random& random);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_ATTENDANT_H_
