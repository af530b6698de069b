// SPDX-License-Identifier: Apache-2.0
#ifndef SOMA_SYS_CHROOT_H_
#define SOMA_SYS_CHROOT_H_

#include <string_view>

namespace soma::sys {

// True when the root directory is no mount's root, as after chroot(2) into a plain folder. There
// the kernel makes no user namespace for anybody, root included (user_namespaces(7), EPERM). False
// also means "can't tell": a chroot into the root of a mount looks like none.
bool InChroot();

inline constexpr std::string_view kChrootRemedy =
    "leave this chroot, in which the kernel gives nobody a user namespace, or make its folder a "
    "mount and enter it by pivot_root, as container managers do";

}  // namespace soma::sys

#endif  // SOMA_SYS_CHROOT_H_
