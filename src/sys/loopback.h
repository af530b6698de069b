// SPDX-License-Identifier: Apache-2.0
// The loopback interface of the calling process's network namespace.
#ifndef SOMA_SYS_LOOPBACK_H_
#define SOMA_SYS_LOOPBACK_H_

namespace soma::sys {

// Brings `lo` up (127.0.0.1 and ::1 come with it). Needs CAP_NET_ADMIN there. 0 or an errno;
// between fork and exec too.
int RaiseLoopback() noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_LOOPBACK_H_
