// SPDX-License-Identifier: Apache-2.0
// The id maps of user namespaces: texts, writing, and namespaces that exist only for their map.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "walls/plan.h"
#include "walls/recipe.h"

namespace soma::walls {
namespace {

// "/proc/self/NAME" or "/proc/PID/NAME" without allocation.
struct ProcPath {
  char text[64] = "/proc/self/";

  ProcPath(pid_t pid, std::string_view name) {
    char* end = text + std::strlen("/proc/");
    if (pid == 0) {
      end = text + std::strlen("/proc/self/");
    } else {
      end = std::to_chars(end, text + sizeof text, pid).ptr;
      *end++ = '/';
    }
    std::memcpy(end, name.data(), name.size());
    end[name.size()] = '\0';
  }
};

int WriteOnce(const char* path, std::string_view text) noexcept {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  if (!file) return errno;
  // The kernel takes a map in one write only (user_namespaces(7)).
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                            : errno;
}

}  // namespace

std::string IdMapText(const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& range : ranges) {
    text += StrCat(range.inside, " ", range.outside, " ", range.count, "\n");
  }
  return text;
}

int WriteIdMaps(pid_t pid, const std::string& uid_map, const std::string& gid_map,
                bool deny_setgroups) noexcept {
  if (deny_setgroups) {
    const int denied = WriteOnce(ProcPath(pid, "setgroups").text, "deny");
    if (denied != 0) return denied;
  }
  const int uids = WriteOnce(ProcPath(pid, "uid_map").text, uid_map);
  return uids != 0 ? uids : WriteOnce(ProcPath(pid, "gid_map").text, gid_map);
}

Result<Fd> MakeMappingNamespace(const std::vector<IdRange>& uids,
                                const std::vector<IdRange>& gids) {
  const std::string uid_text = IdMapText(uids);
  const std::string gid_text = IdMapText(gids);
  const pid_t parent = ::getpid();
  const sys::CloneResult clone = sys::Clone(CLONE_NEWUSER);
  if (clone.pid == 0) {
    (void)sys::DieWithParent(SIGKILL);
    // It may have died before the prctl.
    while (::getppid() == parent) ::pause();
    ::_exit(0);
  }
  if (clone.pid < 0) return std::unexpected(Error::FromErrno(clone.error, "clone3"));
  sys::Process holder(clone.pid, Fd(clone.pidfd));
  const int written = WriteIdMaps(clone.pid, uid_text, gid_text, false);
  Fd space(::open(ProcPath(clone.pid, "ns/user").text, O_RDONLY | O_CLOEXEC));
  const int opened = errno;
  holder.Signal(SIGKILL);
  SOMA_TRY(holder.Wait());
  if (written != 0) return std::unexpected(Error::FromErrno(written, "write the id map"));
  if (!space) return std::unexpected(Error::FromErrno(opened, "open the user namespace"));
  return space;
}

}  // namespace soma::walls
