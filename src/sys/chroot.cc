// SPDX-License-Identifier: Apache-2.0
#include "sys/chroot.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>

namespace soma::sys {

bool InChroot() {
  struct statx facts{};
  if (::statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &facts) != 0) return false;
  const bool told = (facts.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  return told && (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0;
}

}  // namespace soma::sys
