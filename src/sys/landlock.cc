// SPDX-License-Identifier: Apache-2.0
#include "sys/landlock.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <expected>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {
namespace {

// struct landlock_ruleset_attr of ABI 6. An older kernel takes a longer struct if the rest is zero,
// but we pass only the size that the ABI knows.
struct RulesetAttr {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};
// The kernel's struct is packed: 12 bytes.
struct [[gnu::packed]] PathBeneathAttr {
  std::uint64_t allowed_access;
  std::int32_t parent_fd;
};
struct NetPortAttr {
  std::uint64_t allowed_access;
  std::uint64_t port;
};

constexpr unsigned kCreateRulesetVersion = 1U << 0;
constexpr unsigned kRulePathBeneath = 1;
constexpr unsigned kRuleNetPort = 2;

std::size_t AttrSize(int abi) {
  if (abi >= 6) return sizeof(RulesetAttr);
  if (abi >= 4) return offsetof(RulesetAttr, scoped);
  return offsetof(RulesetAttr, handled_access_net);
}

}  // namespace

int LandlockAbi() noexcept {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, kCreateRulesetVersion);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

LandlockHandled LandlockKnown(const LandlockHandled& wanted, int abi) noexcept {
  if (abi <= 0) return {};
  std::uint64_t fs = kLandlockAllFs;
  if (abi < 2) fs &= ~std::uint64_t{kLandlockRefer};
  if (abi < 3) fs &= ~std::uint64_t{kLandlockTruncate};
  if (abi < 5) fs &= ~std::uint64_t{kLandlockIoctlDev};
  const std::uint64_t net = abi >= 4 ? kLandlockBindTcp | kLandlockConnectTcp : 0;
  const std::uint64_t scoped = abi >= 6 ? kLandlockScopeAbstractUnix | kLandlockScopeSignal : 0;
  return {.fs = wanted.fs & fs, .net = wanted.net & net, .scoped = wanted.scoped & scoped};
}

Result<LandlockRuleset> LandlockRuleset::Create(const LandlockHandled& wanted) {
  const int abi = LandlockAbi();
  if (abi == 0) return Fail(Errc::kUnimplemented, "this kernel has no Landlock");
  const LandlockHandled handled = LandlockKnown(wanted, abi);
  const RulesetAttr attr{
      .handled_access_fs = handled.fs, .handled_access_net = handled.net, .scoped = handled.scoped};
  const long fd = ::syscall(SYS_landlock_create_ruleset, &attr, AttrSize(abi), 0U);
  if (fd < 0) return std::unexpected(Error::FromErrno(errno, "landlock_create_ruleset"));
  return LandlockRuleset(Fd(static_cast<int>(fd)), handled);
}

Status LandlockRuleset::AllowPath(int path_fd, std::uint64_t rights) {
  struct stat facts{};
  if (::fstat(path_fd, &facts) != 0) {
    return std::unexpected(Error::FromErrno(errno, "fstat of a Landlock path"));
  }
  std::uint64_t allowed = rights & handled_.fs;
  if (!S_ISDIR(facts.st_mode)) allowed &= kLandlockFileOnly;
  if (allowed == 0) return {};  // the kernel answers ENOMSG to an empty rule
  const PathBeneathAttr attr{.allowed_access = allowed, .parent_fd = path_fd};
  if (::syscall(SYS_landlock_add_rule, fd_.get(), kRulePathBeneath, &attr, 0U) != 0) {
    return std::unexpected(Error::FromErrno(errno, "landlock_add_rule for a path"));
  }
  return {};
}

Status LandlockRuleset::AllowTcpPort(std::uint16_t port, std::uint64_t rights) {
  const NetPortAttr attr{.allowed_access = rights & handled_.net, .port = port};
  if (attr.allowed_access == 0) return {};
  if (::syscall(SYS_landlock_add_rule, fd_.get(), kRuleNetPort, &attr, 0U) != 0) {
    return std::unexpected(
        Error::FromErrno(errno, StrCat("landlock_add_rule for TCP port ", port)));
  }
  return {};
}

int LandlockRestrictSelf(int ruleset_fd) noexcept {
  return ::syscall(SYS_landlock_restrict_self, ruleset_fd, 0U) == 0 ? 0 : errno;
}

}  // namespace soma::sys
