// SPDX-License-Identifier: Apache-2.0
#include "launcher/sandbox_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

Status Give(const Fd& directory, const char* name, Owner owner) {
  if (fchownat(directory.get(), name, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chown ", name)));
  }
  return {};
}

Status WriteOwned(const Fd& directory, const char* name, std::string_view text, Owner owner) {
  const Fd file(openat(directory.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return std::unexpected(Error::FromErrno(errno, StrCat("create /etc/", name)));
  SOMA_TRY(sys::WriteAll(file, AsBytes(text)));
  return Give(directory, name, owner);
}

}  // namespace

Status WriteSandboxNames(const Fd& directory, std::uint32_t uid, std::uint32_t gid,
                         std::string_view host_name) {
  const Owner owner{.uid = uid, .gid = gid};
  if (mkdirat(directory.get(), "upper/etc", 0755) < 0) {
    return std::unexpected(Error::FromErrno(errno, "mkdir /etc"));
  }
  SOMA_TRY(Give(directory, "upper/etc", owner));
  const Fd etc(openat(directory.get(), "upper/etc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  SOMA_TRY(WriteOwned(etc, "hostname", StrCat(host_name, "\n"), owner));
  // sudo complains about a host name that it can't resolve.
  SOMA_TRY(WriteOwned(
      etc, "hosts",
      StrCat("127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 ", host_name, "\n"),
      owner));
  // Port 53 of every address is the capture's.
  return WriteOwned(etc, "resolv.conf", "nameserver 127.0.0.1\noptions timeout:5\n", owner);
}

}  // namespace soma::launcher
