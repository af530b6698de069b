// SPDX-License-Identifier: Apache-2.0
#include "walls/cgroup_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "base/text.h"
#include "walls/task_cgroups.h"

namespace soma::walls {
namespace {

constexpr std::string_view kPrefix = "soma-run-";
constexpr time_t kOldSeconds = 60;

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool IsLeftover(int parent, const char* name) {
  const std::string_view text(name);
  if (!text.starts_with(kPrefix)) return false;
  const auto pid = ParseInt<pid_t>(text.substr(kPrefix.size()));
  if (!pid || *pid <= 0 || ::kill(*pid, 0) == 0 || errno != ESRCH) return false;
  struct stat facts{};
  if (::fstatat(parent, name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
         ::time(nullptr) - facts.st_mtime > kOldSeconds;
}

}  // namespace

std::string TaskCgroupName(pid_t pid) { return StrCat(kPrefix, pid); }

void SweepTaskCgroups() {
  for (const std::string& base : TaskCgroupBases()) {
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(base.c_str()));
    if (!directory) continue;
    const int parent = ::dirfd(directory.get());
    while (const dirent* entry = ::readdir(directory.get())) {
      // Refused (EBUSY) by the kernel for one that holds a process or another directory.
      if (IsLeftover(parent, entry->d_name)) (void)::unlinkat(parent, entry->d_name, AT_REMOVEDIR);
    }
  }
}

}  // namespace soma::walls
