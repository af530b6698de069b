// SPDX-License-Identifier: Apache-2.0
// Landlock: rule sets over file hierarchies, TCP ports and scopes, at whatever ABI the kernel has.
//
// A right that the kernel doesn't know is dropped from the set (`Handled` says what is left), so
// the caller decides whether the rest is enough: nothing is "best effort" silently. The numbers are
// written out because Debian 12's headers end at ABI 3; source: linux/landlock.h of 6.15 and
// landlock(7).
#ifndef SOMA_SYS_LANDLOCK_H_
#define SOMA_SYS_LANDLOCK_H_

#include <cstdint>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// Rights over files and directories (LANDLOCK_ACCESS_FS_*), with the ABI that brought them.
enum LandlockFs : std::uint64_t {
  kLandlockExecute = 1ULL << 0,
  kLandlockWriteFile = 1ULL << 1,
  kLandlockReadFile = 1ULL << 2,
  kLandlockReadDir = 1ULL << 3,
  kLandlockRemoveDir = 1ULL << 4,
  kLandlockRemoveFile = 1ULL << 5,
  kLandlockMakeChar = 1ULL << 6,
  kLandlockMakeDir = 1ULL << 7,
  kLandlockMakeReg = 1ULL << 8,
  kLandlockMakeSock = 1ULL << 9,
  kLandlockMakeFifo = 1ULL << 10,
  kLandlockMakeBlock = 1ULL << 11,
  kLandlockMakeSym = 1ULL << 12,
  kLandlockRefer = 1ULL << 13,     // ABI 2: link and rename across directories
  kLandlockTruncate = 1ULL << 14,  // ABI 3
  kLandlockIoctlDev = 1ULL << 15,  // ABI 5
};
// Rights over TCP ports (ABI 4). They cover classic TCP only: MPTCP is the seccomp filter's matter.
enum LandlockNet : std::uint64_t {
  kLandlockBindTcp = 1ULL << 0,
  kLandlockConnectTcp = 1ULL << 1,
};
// Scopes (ABI 6): what can't be reached outside the own domain.
enum LandlockScope : std::uint64_t {
  kLandlockScopeAbstractUnix = 1ULL << 0,
  kLandlockScopeSignal = 1ULL << 1,
};

// What reading needs, what looking at and running programs needs, and all that changes something.
inline constexpr std::uint64_t kLandlockRead = kLandlockReadFile | kLandlockReadDir;
inline constexpr std::uint64_t kLandlockReadExecute = kLandlockRead | kLandlockExecute;
inline constexpr std::uint64_t kLandlockWrite =
    kLandlockWriteFile | kLandlockRemoveDir | kLandlockRemoveFile | kLandlockMakeDir |
    kLandlockMakeReg | kLandlockMakeSock | kLandlockMakeFifo | kLandlockMakeSym | kLandlockRefer |
    kLandlockTruncate;
// Rights that make sense on a file that isn't a directory; others answer EINVAL there.
inline constexpr std::uint64_t kLandlockFileOnly = kLandlockExecute | kLandlockWriteFile |
                                                   kLandlockReadFile | kLandlockTruncate |
                                                   kLandlockIoctlDev;
inline constexpr std::uint64_t kLandlockAllFs = (1ULL << 16) - 1;

struct LandlockHandled {
  std::uint64_t fs = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
};

// The ABI that the kernel implements; 0 when Landlock is absent or switched off. One system call.
int LandlockAbi() noexcept;
// The part of `wanted` that ABI `abi` knows.
LandlockHandled LandlockKnown(const LandlockHandled& wanted, int abi) noexcept;

// A rule set being filled. What it handles is refused unless a rule allows it. Build it before the
// fork; `RestrictSelf` is for after.
class LandlockRuleset {
 public:
  // Handles what the kernel knows of `wanted`. kUnimplemented when Landlock is absent.
  static Result<LandlockRuleset> Create(const LandlockHandled& wanted);

  // Allows `rights` (only the handled ones count) on what `path_fd` (O_PATH suffices) refers to,
  // with all below. On a file the directory rights are left out.
  Status AllowPath(int path_fd, std::uint64_t rights);
  Status AllowTcpPort(std::uint16_t port, std::uint64_t rights);

  // The rights that this kernel really enforces.
  const LandlockHandled& handled() const { return handled_; }
  // For LandlockRestrictSelf in a child. Stays owned.
  const Fd& fd() const { return fd_; }

 private:
  LandlockRuleset(Fd fd, const LandlockHandled& handled) : fd_(std::move(fd)), handled_(handled) {}
  Fd fd_;
  LandlockHandled handled_;
};

// Puts the calling thread and its later children under the rule set, for ever. Needs no_new_privs
// or CAP_SYS_ADMIN in the own user namespace. Async-signal-safe. 0 or an errno (E2BIG: 16 domains
// are stacked already).
int LandlockRestrictSelf(int ruleset_fd) noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_LANDLOCK_H_
