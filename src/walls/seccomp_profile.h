// SPDX-License-Identifier: Apache-2.0
// The seccomp programs that this house has, by name. They are generated at build time from
// data/seccomp/<name>.list, which says call by call what is opened and why.
//
// All of them: a foreign architecture (i386, x32) kills the process; a call number that the lists
// don't know answers ENOSYS, one that they refuse EPERM, clone3 ENOSYS (its flags are behind a
// pointer; every libc then falls back to clone).
#ifndef SOMA_WALLS_SECCOMP_PROFILE_H_
#define SOMA_WALLS_SECCOMP_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "sys/seccomp.h"

namespace soma::walls {

// The values are part of the plan's encoding: append only.
enum class SeccompProfile : std::uint8_t {
  kStrict =
      1,  // tasks without privileges: any program that needs none of the kernel's administration
  kRooted =
      2,     // tasks whose user may become root inside; load it *before* capabilities are dropped
  kVmm = 3,  // the jail of QEMU
  kServer =
      4,  // soma-server once it listens: files, sockets, threads; no execve, no fork, no ptrace
  kAlone = 5,     // kStrict without namespaces: no sockets but stream pairs, no System V IPC
  kLauncher = 6,  // the launcher's worker and all that it starts: no kernel modules, bpf, clock, …
  kMonitor = 7,   // a monitor whose sandbox runs: packets, time, one pidfd
};

enum class SeccompNotify : std::uint8_t {
  kNone,
  // Write-intent file calls, execve, connect and bind wait for the supervisor (walls/supervisor.h).
  // Needs LoadSeccompWithListener, and somebody who serves the listener before the first such call:
  // the execve of the task is one. Only for kStrict, kRooted and kAlone.
  kMutating,
};

// The program. SOMA_CHECKs that the combination exists.
sys::SeccompProgram ProgramFor(SeccompProfile profile, SeccompNotify notify);

std::string_view SeccompProfileName(SeccompProfile profile);
std::optional<SeccompProfile> ParseSeccompProfile(std::string_view name);

}  // namespace soma::walls

#endif  // SOMA_WALLS_SECCOMP_PROFILE_H_
