// SPDX-License-Identifier: Apache-2.0
#include "walls/descendants.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sys/fd.h"

namespace soma::walls {
namespace {

// The parent in /proc/PID/stat: "PID (NAME) STATE PPID …"; NAME may hold anything, so from the last
// ")". 0 when it can't be told.
pid_t ParentOf(int proc, const char* name) {
  char path[32];
  constexpr std::string_view kStat = "/stat";
  const std::string_view number = name;
  if (number.size() > 16) return 0;
  char* const end = std::ranges::copy(kStat, std::ranges::copy(number, path).out).out;
  *end = '\0';
  const Fd file(::openat(proc, path, O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t got = file ? ::read(file.get(), text, sizeof text) : -1;
  if (got <= 0) return 0;
  std::string_view rest(text, static_cast<std::size_t>(got));
  const auto close = rest.rfind(')');
  if (close == std::string_view::npos || rest.size() < close + 5) return 0;
  rest.remove_prefix(close + 4);
  pid_t parent = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  return parent;
}

// struct linux_dirent64, getdents64(2).
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

}  // namespace

// /proc/PID/task/TID/children would be shorter, but CONFIG_PROC_CHILDREN isn't everywhere.
bool KillChildren(pid_t parent) noexcept {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!proc) return false;
  bool any = false;
  alignas(Entry) char buffer[8192];
  for (;;) {
    const long size = ::syscall(SYS_getdents64, proc.get(), buffer, sizeof buffer);
    if (size <= 0) return any;
    for (long at = 0; at < size;) {
      const auto* const entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->length;
      pid_t pid = 0;
      std::from_chars(entry->name, entry->name + std::strlen(entry->name), pid);
      // A child keeps its number until we reap it, so this can't hit another.
      if (pid > 0 && ParentOf(proc.get(), entry->name) == parent) {
        any |= ::kill(pid, SIGKILL) == 0;
      }
    }
  }
}

}  // namespace soma::walls
