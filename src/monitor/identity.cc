// SPDX-License-Identifier: Apache-2.0
#include "monitor/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <expected>

#include "base/error.h"
#include "base/result.h"
#include "sys/seccomp.h"
#include "walls/seccomp_profile.h"

namespace soma::monitor {
namespace {

std::unexpected<Error> Errno(const char* what) {
  return std::unexpected(Error::FromErrno(errno, what));
}

// capset(2) in its second version of the structure: two words of 32 capabilities.
struct CapabilityWords {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {};
};

}  // namespace

Status BecomeWithCapabilities(std::uint32_t uid) {
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) return Errno("PR_SET_KEEPCAPS");
  if (setgroups(0, nullptr) < 0) return Errno("setgroups");
  if (setresgid(uid, uid, uid) < 0) return Errno("setresgid");
  if (setresuid(uid, uid, uid) < 0) return Errno("setresuid");
  CapabilityWords set;
  if (syscall(SYS_capget, &set.header, set.words) < 0) return Errno("capget");
  for (__user_cap_data_struct& word : set.words) word.effective = word.permitted;
  if (syscall(SYS_capset, &set.header, set.words) < 0) return Errno("capset");
  if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0) return Errno("PR_SET_DUMPABLE");
  return {};
}

Status DropEverything() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return Errno("PR_SET_NO_NEW_PRIVS");
  CapabilityWords none;
  if (syscall(SYS_capset, &none.header, none.words) < 0) return Errno("capset");
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return Errno("PR_SET_DUMPABLE");
  const int failed = sys::LoadSeccomp(
      walls::ProgramFor(walls::SeccompProfile::kMonitor, walls::SeccompNotify::kNone));
  if (failed == 0) return {};
  return std::unexpected(Error::FromErrno(failed, "loading the monitor's seccomp filter"));
}

}  // namespace soma::monitor
