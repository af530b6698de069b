// SPDX-License-Identifier: Apache-2.0
#include "launcher/lock_down.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstdint>
#include <expected>

#include "base/error.h"
#include "base/result.h"
#include "base/test_switch.h"
#include "sys/capability_set.h"
#include "sys/seccomp.h"
#include "walls/seccomp_profile.h"

namespace soma::launcher {
namespace {

// What opens what. A user namespace has a full set of its own, so what sandboxes are given inside
// is not bounded by this.
constexpr int kKept[] = {
    CAP_SYS_ADMIN,     // mounts, loop devices, cgroups, filters without no_new_privs
    CAP_SETUID,        // id maps, and becoming a monitor
    CAP_SETGID,        //
    CAP_SETPCAP,       // dropping more, in what it starts
    CAP_CHOWN,         // the files of a sandbox's disk, the socket of the server's user
    CAP_DAC_OVERRIDE,  // files of the ids of sandboxes
    CAP_FOWNER,        //
    CAP_FSETID,        //
    CAP_KILL,          // processes with the ids of sandboxes
    CAP_SYS_CHROOT,    // pivot_root's second half
    CAP_SYS_PTRACE,    // /proc/PID/ns of a monitor, which has another id
    CAP_SYS_RESOURCE,  // limits above its own
};

}  // namespace

Status LockDownWorker() {
  const std::uint64_t had = sys::EffectiveCapabilities();
  if ((had >> CAP_SYS_ADMIN & 1) != 0) {
    std::uint64_t keep = 0;
    for (const int one : kKept) keep |= std::uint64_t{1} << static_cast<unsigned>(one);
    // Tests: without user namespaces all set-up inside is done with what root has here.
    if (WithoutWall("user")) keep = had;
    int failed = sys::BoundCapabilities(keep);
    if (failed == 0) failed = sys::SetCapabilities(keep & had);
    if (failed != 0) {
      return std::unexpected(Error::FromErrno(failed, "dropping the launcher's capabilities"));
    }
  } else {
    // Whatever a root of less, or a user with a capability, has: nothing here can use it.
    const int dropped = sys::SetCapabilities(0);
    if (dropped != 0) {
      return std::unexpected(Error::FromErrno(dropped, "dropping the launcher's capabilities"));
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return std::unexpected(Error::FromErrno(errno, "PR_SET_NO_NEW_PRIVS"));
    }
  }
  const int failed = sys::LoadSeccomp(
      walls::ProgramFor(walls::SeccompProfile::kLauncher, walls::SeccompNotify::kNone));
  if (failed == 0) return {};
  return std::unexpected(Error::FromErrno(failed, "loading the launcher's seccomp filter"));
}

}  // namespace soma::launcher
