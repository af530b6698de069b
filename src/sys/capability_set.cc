// SPDX-License-Identifier: Apache-2.0
#include "sys/capability_set.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace soma::sys {

std::uint64_t EffectiveCapabilities() noexcept {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return static_cast<std::uint64_t>(data[1].effective) << 32 | data[0].effective;
}

int BoundCapabilities(std::uint64_t keep) noexcept {
  constexpr unsigned kSetBits = 64;
  for (unsigned i = 0; i < kSetBits; ++i) {
    if ((keep >> i & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) break;  // beyond the last one that this kernel has
    return errno == EPERM && EffectiveCapabilities() == 0 ? 0 : errno;
  }
  return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 ? 0 : errno;
}

int SetCapabilities(std::uint64_t keep) noexcept {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const auto low = static_cast<std::uint32_t>(keep);
  const auto high = static_cast<std::uint32_t>(keep >> 32);
  const __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
      {.effective = low, .permitted = low, .inheritable = 0},
      {.effective = high, .permitted = high, .inheritable = 0}};
  return ::syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

}  // namespace soma::sys
