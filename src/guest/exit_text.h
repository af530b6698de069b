// SPDX-License-Identifier: Apache-2.0
// How a program ended, in the words that E2B's SDKs pass on: "exit status 1", "signal: killed".
// Pure.
#ifndef SOMA_GUEST_EXIT_TEXT_H_
#define SOMA_GUEST_EXIT_TEXT_H_

#include "wire/reply.h"

namespace soma::guest {

// From a wait status (waitpid(2)). `timed_out` is false.
wire::Exit ExitFromStatus(int wait_status);

}  // namespace soma::guest

#endif  // SOMA_GUEST_EXIT_TEXT_H_
