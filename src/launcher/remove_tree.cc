// SPDX-License-Identifier: Apache-2.0
#include "launcher/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "sys/fd.h"

namespace soma::launcher {
namespace {

// Removes the files of one directory and moves its directories up into `top`: depth becomes
// breadth, so neither the stack nor the number of descriptors grows with what somebody nested.
bool EmptyInto(const Fd& top, const char* name, std::uint64_t& counter) {
  const Fd directory(openat(top.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return false;
  DIR* entries = fdopendir(fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  if (entries == nullptr) return false;
  bool moved = false;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view child(entry->d_name);
    if (child == "." || child == "..") continue;
    if (unlinkat(directory.get(), entry->d_name, 0) == 0) continue;
    if (unlinkat(directory.get(), entry->d_name, AT_REMOVEDIR) == 0) continue;
    // Not empty. Whoever owns it may open it again, whatever its mode is now.
    (void)fchmodat(directory.get(), entry->d_name, 0700, AT_SYMLINK_NOFOLLOW);
    const std::string fresh = StrCat("removed-", ++counter);
    moved = renameat(directory.get(), entry->d_name, top.get(), fresh.c_str()) == 0 || moved;
  }
  closedir(entries);
  return unlinkat(top.get(), name, AT_REMOVEDIR) == 0 || moved;
}

}  // namespace

void RemoveTree(const std::string& path) {
  (void)chmod(path.c_str(), 0700);
  const Fd top(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top) return;
  std::uint64_t counter = 0;
  for (bool progress = true; progress;) {
    progress = false;
    DIR* entries = fdopendir(openat(top.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (entries == nullptr) return;
    while (const dirent* entry = readdir(entries)) {
      const std::string_view child(entry->d_name);
      if (child == "." || child == "..") continue;
      if (unlinkat(top.get(), entry->d_name, 0) == 0) continue;
      (void)fchmodat(top.get(), entry->d_name, 0700, AT_SYMLINK_NOFOLLOW);
      progress = EmptyInto(top, entry->d_name, counter) || progress;
    }
    closedir(entries);
  }
  rmdir(path.c_str());
}

}  // namespace soma::launcher
