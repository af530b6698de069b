// SPDX-License-Identifier: Apache-2.0
#include "sys/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <expected>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/process.h"

namespace soma::sys {
namespace {

Status WriteMap(const std::string& path, const std::string& map) {
  SOMA_ASSIGN(const Fd file, OpenFile(path, O_WRONLY));
  return WriteAll(file, AsBytes(map));
}

Result<Fd> MapAndOpen(pid_t child, std::uint32_t first, std::uint32_t count) {
  const std::string process = StrCat("/proc/", child);
  const std::string map = StrCat("0 ", first, " ", count, "\n");
  SOMA_TRY(WriteMap(process + "/uid_map", map));
  SOMA_TRY(WriteMap(process + "/gid_map", map));
  return OpenFile(process + "/ns/user", O_RDONLY);
}

}  // namespace

Result<Fd> NewUserNamespace(std::uint32_t first, std::uint32_t count) {
  const pid_t parent = getpid();
  const CloneResult child = Clone(CLONE_NEWUSER);
  if (child.pid < 0) {
    return std::unexpected(Error::FromErrno(child.error, "clone of a user namespace"));
  }
  if (child.pid == 0) {
    (void)DieWithParent(SIGKILL);
    // It may have died before the prctl.
    while (getppid() == parent) pause();
    _exit(0);
  }
  Process process(child.pid, Fd(child.pidfd));
  auto result = MapAndOpen(child.pid, first, count);
  process.Signal(SIGKILL);
  (void)process.Wait();
  return result;
}

}  // namespace soma::sys
