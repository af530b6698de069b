// SPDX-License-Identifier: Apache-2.0
#include "tools/seccomp/constants.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>  // IWYU pragma: keep
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace soma::seccomp {
namespace {

struct Constant {
  std::string_view name;
  std::uint64_t value;
};

#define SOMA_CONSTANT(name) {#name, static_cast<std::uint64_t>(name)}

constexpr Constant kConstants[] = {
    // socket(2)
    SOMA_CONSTANT(AF_UNIX),
    SOMA_CONSTANT(AF_INET),
    SOMA_CONSTANT(AF_INET6),
    SOMA_CONSTANT(AF_NETLINK),
    SOMA_CONSTANT(SOCK_STREAM),
    SOMA_CONSTANT(SOCK_DGRAM),
    SOMA_CONSTANT(SOCK_RAW),
    SOMA_CONSTANT(SOCK_SEQPACKET),
    {"SOCK_TYPE_MASK", 0xf},  // linux/net.h; not exported
    SOMA_CONSTANT(IPPROTO_ICMP),
    SOMA_CONSTANT(IPPROTO_TCP),
    SOMA_CONSTANT(IPPROTO_UDP),
    SOMA_CONSTANT(IPPROTO_ICMPV6),
    SOMA_CONSTANT(NETLINK_ROUTE),
    // clone(2), unshare(2), setns(2)
    SOMA_CONSTANT(CLONE_NEWNS),
    SOMA_CONSTANT(CLONE_NEWCGROUP),
    SOMA_CONSTANT(CLONE_NEWUTS),
    SOMA_CONSTANT(CLONE_NEWIPC),
    SOMA_CONSTANT(CLONE_NEWUSER),
    SOMA_CONSTANT(CLONE_NEWPID),
    SOMA_CONSTANT(CLONE_NEWNET),
    SOMA_CONSTANT(CLONE_PARENT),
    SOMA_CONSTANT(CLONE_THREAD),
    SOMA_CONSTANT(CLONE_FS),
    SOMA_CONSTANT(CLONE_FILES),
    SOMA_CONSTANT(CLONE_SYSVSEM),
    // open(2) and relatives
    SOMA_CONSTANT(O_WRONLY),
    SOMA_CONSTANT(O_RDWR),
    SOMA_CONSTANT(O_CREAT),
    SOMA_CONSTANT(O_TRUNC),
    {"O_TMPFILE_BIT", O_TMPFILE & ~O_DIRECTORY},
    SOMA_CONSTANT(S_IFMT),
    SOMA_CONSTANT(S_IFCHR),
    SOMA_CONSTANT(S_IFBLK),
    SOMA_CONSTANT(S_IFIFO),
    SOMA_CONSTANT(S_IFREG),
    SOMA_CONSTANT(S_IFSOCK),
    SOMA_CONSTANT(S_ISUID),
    SOMA_CONSTANT(S_ISGID),
    // ioctl(2)
    SOMA_CONSTANT(TIOCSTI),
    SOMA_CONSTANT(TIOCLINUX),
    SOMA_CONSTANT(TIOCSETD),
    SOMA_CONSTANT(TIOCCONS),
    SOMA_CONSTANT(FIONBIO),
    SOMA_CONSTANT(FIONREAD),
    SOMA_CONSTANT(TCGETS),
    SOMA_CONSTANT(TCSETS),
    SOMA_CONSTANT(TIOCGWINSZ),
    SOMA_CONSTANT(BLKGETSIZE64),
    SOMA_CONSTANT(BLKSSZGET),
    SOMA_CONSTANT(BLKPBSZGET),
    // personality(2)
    SOMA_CONSTANT(PER_LINUX),
    SOMA_CONSTANT(PER_LINUX32),
    SOMA_CONSTANT(UNAME26),
    SOMA_CONSTANT(ADDR_NO_RANDOMIZE),
    {"PERSONALITY_QUERY", 0xffffffff},  // personality(2): asks, changes nothing
    // prctl(2)
    SOMA_CONSTANT(PR_SET_SECCOMP),
    SOMA_CONSTANT(PR_SET_MM),
    SOMA_CONSTANT(PR_SET_NAME),
    SOMA_CONSTANT(PR_GET_NAME),
    SOMA_CONSTANT(PR_SET_DUMPABLE),
    SOMA_CONSTANT(PR_GET_DUMPABLE),
    SOMA_CONSTANT(PR_SET_PDEATHSIG),
    SOMA_CONSTANT(PR_SET_NO_NEW_PRIVS),
    SOMA_CONSTANT(PR_SET_TIMERSLACK),
    SOMA_CONSTANT(PR_SET_VMA),
    SOMA_CONSTANT(PR_CAPBSET_READ),
    SOMA_CONSTANT(PR_GET_SECCOMP),
    SOMA_CONSTANT(PR_MCE_KILL),
    // seccomp(2)
    SOMA_CONSTANT(SECCOMP_SET_MODE_STRICT),
    SOMA_CONSTANT(SECCOMP_SET_MODE_FILTER),
    SOMA_CONSTANT(SECCOMP_GET_ACTION_AVAIL),
    SOMA_CONSTANT(SECCOMP_GET_NOTIF_SIZES),
    SOMA_CONSTANT(SECCOMP_FILTER_FLAG_NEW_LISTENER),
};

#undef SOMA_CONSTANT

constexpr Constant kErrnos[] = {
    {"EPERM", EPERM},
    {"ENOSYS", ENOSYS},
    {"EACCES", EACCES},
    {"EINVAL", EINVAL},
    {"ENOENT", ENOENT},
    {"EROFS", EROFS},
    {"EAFNOSUPPORT", EAFNOSUPPORT},
    {"ENODEV", ENODEV},
    {"EPROTONOSUPPORT", EPROTONOSUPPORT},
    {"EOPNOTSUPP", EOPNOTSUPP},
};

std::optional<std::uint64_t> ParseOne(std::string_view text) {
  for (const Constant& constant : kConstants) {
    if (constant.name == text) return constant.value;
  }
  if (!text.starts_with("0x")) return ParseInt<std::uint64_t>(text);
  std::uint64_t value = 0;
  const std::string_view digits = text.substr(2);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<std::uint64_t> ParseValue(std::string_view text) {
  std::uint64_t value = 0;
  for (const std::string_view part : Split(text, '|')) {
    const auto one = ParseOne(part);
    if (!one) return std::nullopt;
    value |= *one;
  }
  return value;
}

std::optional<std::uint16_t> ParseErrno(std::string_view name) {
  for (const Constant& constant : kErrnos) {
    if (constant.name == name) return static_cast<std::uint16_t>(constant.value);
  }
  return std::nullopt;
}

}  // namespace soma::seccomp
