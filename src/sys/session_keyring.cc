// SPDX-License-Identifier: Apache-2.0
#include "sys/session_keyring.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace soma::sys {

void LeaveSessionKeyring() noexcept {
  constexpr int kJoinSessionKeyring = 1;  // keyctl(2), KEYCTL_JOIN_SESSION_KEYRING
  (void)::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr);
}

}  // namespace soma::sys
