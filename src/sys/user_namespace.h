// SPDX-License-Identifier: Apache-2.0
// A user namespace as a descriptor, without a process in it: for id-mapped mounts.
#ifndef SOMA_SYS_USER_NAMESPACE_H_
#define SOMA_SYS_USER_NAMESPACE_H_

#include <cstdint>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// The ids 0 to count - 1 inside are `first` and following outside, users and groups alike. Needs
// CAP_SETUID and CAP_SETGID over the outside ids. Costs one short-lived process.
Result<Fd> NewUserNamespace(std::uint32_t first, std::uint32_t count);

}  // namespace soma::sys

#endif  // SOMA_SYS_USER_NAMESPACE_H_
