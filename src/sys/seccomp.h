// SPDX-License-Identifier: Apache-2.0
// Seccomp: loading a BPF program into the calling thread, and speaking to a notification listener.
//
// `sys` only loads; the programs are generated at build time from data/seccomp (see
// walls/seccomp_profile.h). Everything here is async-signal-safe and allocates nothing, because it
// runs between fork and exec: failures are errno values, not Results.
// Source of every constant and layout: linux/seccomp.h; behaviour: seccomp(2), seccomp_unotify(2).
#ifndef SOMA_SYS_SECCOMP_H_
#define SOMA_SYS_SECCOMP_H_

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>

#include "sys/fd.h"

namespace soma::sys {

// A BPF program. The instructions are constants of the executable: a program is cheap to copy and
// lives for ever.
struct SeccompProgram {
  std::span<const sock_filter> instructions;
};

// Installs `program` for the calling thread; it holds for it and all its later children, for ever.
// Needs no_new_privs or CAP_SYS_ADMIN in the own user namespace. Gives 0 or an errno (EACCES when
// neither is there, EINVAL for a malformed or an empty program).
int LoadSeccomp(SeccompProgram program) noexcept;

// A new listener or an errno. Exactly one of both is set.
struct SeccompListener {
  Fd listener;  // close-on-exec
  int error = 0;
};

// As LoadSeccomp, and opens the listener that answers the program's notifications. Asks for
// WAIT_KILLABLE_RECV (since 5.19): once a notification was received, the caller sleeps killable
// only. Without it a signal storm restarts calls and doubles their side effects (measured: 58,795
// events of 50,000 calls), so a kernel without it is answered EINVAL. EBUSY: a filter of this
// process has a listener already (the kernel allows one), e.g. soma inside soma.
// From then on every notified call of this thread sleeps until somebody serves the listener; when
// the last descriptor of the listener closes they answer ENOSYS.
SeccompListener LoadSeccompWithListener(SeccompProgram program) noexcept;

// Receives one notification; 0 or an errno. EAGAIN never comes: poll first, the call blocks.
// ENOENT: the caller died meanwhile; EINTR: try again; both are ordinary.
int ReceiveNotification(const Fd& listener, seccomp_notif& notification) noexcept;

// Is the caller of `id` still in its call? If not, whatever was read from /proc/PID may be another
// process's.
bool NotificationIsValid(const Fd& listener, std::uint64_t id) noexcept;

// The caller's system call goes on as if nothing had been there. What it points to may have changed
// since it was read, so this is an answer only where another wall holds. 0 or an errno (ENOENT: the
// caller is gone).
int ContinueCall(const Fd& listener, std::uint64_t id) noexcept;
// The caller's system call returns -1 with `errno_value` (1..4095) and isn't executed.
int RefuseCall(const Fd& listener, std::uint64_t id, int errno_value) noexcept;
// The caller's system call returns `value` and isn't executed.
int AnswerCall(const Fd& listener, std::uint64_t id, std::int64_t value) noexcept;
// Puts a copy of `source` into the caller under a number of the kernel's choice; gives the number,
// or -errno. The caller goes on sleeping until answered: close `source` before AnswerCall, or the
// caller may see its lease or lock disturbed by our copy.
int AddFdToCaller(const Fd& listener, std::uint64_t id, int source,
                  std::uint32_t fd_flags) noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_SECCOMP_H_
