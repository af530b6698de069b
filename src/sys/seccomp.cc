// SPDX-License-Identifier: Apache-2.0
#include "sys/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "sys/fd.h"

namespace soma::sys {
namespace {

// linux/seccomp.h of 5.19; Debian 12's header has it, older build machines don't.
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
constexpr unsigned long kWaitKillableRecv = 1UL << 5;
#else
constexpr unsigned long kWaitKillableRecv = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
#endif

long SetFilter(SeccompProgram program, unsigned long flags) noexcept {
  const sock_fprog raw{
      .len = static_cast<unsigned short>(program.instructions.size()),
      // The kernel only reads; its header has no const.
      .filter = const_cast<sock_filter*>(program.instructions.data()),
  };
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &raw);
}

int Respond(const Fd& listener, const seccomp_notif_resp& response) noexcept {
  seccomp_notif_resp copy = response;
  return ::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &copy) == 0 ? 0 : errno;
}

}  // namespace

int LoadSeccomp(SeccompProgram program) noexcept { return SetFilter(program, 0) == 0 ? 0 : errno; }

SeccompListener LoadSeccompWithListener(SeccompProgram program) noexcept {
  const long listener = SetFilter(program, SECCOMP_FILTER_FLAG_NEW_LISTENER | kWaitKillableRecv);
  if (listener < 0) return {.listener = Fd(), .error = errno};
  return {.listener = Fd(static_cast<int>(listener)), .error = 0};
}

int ReceiveNotification(const Fd& listener, seccomp_notif& notification) noexcept {
  notification = {};  // the kernel refuses a buffer that isn't zero
  return ::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &notification) == 0 ? 0 : errno;
}

bool NotificationIsValid(const Fd& listener, std::uint64_t id) noexcept {
  return ::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int ContinueCall(const Fd& listener, std::uint64_t id) noexcept {
  return Respond(listener, {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE});
}

int RefuseCall(const Fd& listener, std::uint64_t id, int errno_value) noexcept {
  return Respond(listener, {.id = id, .error = -errno_value});
}

int AnswerCall(const Fd& listener, std::uint64_t id, std::int64_t value) noexcept {
  return Respond(listener, {.id = id, .val = value});
}

int AddFdToCaller(const Fd& listener, std::uint64_t id, int source,
                  std::uint32_t fd_flags) noexcept {
  seccomp_notif_addfd request{
      .id = id, .flags = 0, .srcfd = static_cast<std::uint32_t>(source), .newfd_flags = fd_flags};
  const int number = ::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &request);
  return number >= 0 ? number : -errno;
}

}  // namespace soma::sys
