// SPDX-License-Identifier: Apache-2.0
// The kernel's session keyring of this process, keyrings(7).
#ifndef SOMA_SYS_SESSION_KEYRING_H_
#define SOMA_SYS_SESSION_KEYRING_H_

namespace soma::sys {

// A session keyring is inherited, and whoever possesses it reads its keys. The filters refuse the
// calls for that; this takes away what they would read: from here on it is a new, empty one. Not
// refused when it can't be had: a kernel without keys, an outer filter that forbids the call (it
// then forbids it inside too), or a quota of keyrings that is used up. Between fork and exec too.
void LeaveSessionKeyring() noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_SESSION_KEYRING_H_
