// SPDX-License-Identifier: Apache-2.0
// Who a monitor is: for a moment root's capabilities under its own user id, so that the user
// namespaces it makes belong to that id; afterwards nothing at all.
#ifndef SOMA_MONITOR_IDENTITY_H_
#define SOMA_MONITOR_IDENTITY_H_

#include <cstdint>

#include "base/result.h"

namespace soma::monitor {

// All user and group ids become `uid`, supplementary groups go, capabilities stay in effect. The
// process stays dumpable: the id maps of its children are files that only the owner may open.
Status BecomeWithCapabilities(std::uint32_t uid);

// No capability in any set, none to be had by executing anything, nothing to be read by ptrace, no
// call beyond the seccomp profile `monitor`.
// What is left over the sandbox comes from owning its outer user namespace.
Status DropEverything();

}  // namespace soma::monitor

#endif  // SOMA_MONITOR_IDENTITY_H_
