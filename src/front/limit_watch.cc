// SPDX-License-Identifier: Apache-2.0
#include "front/limit_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "sys/fd.h"

namespace soma::front {

namespace {

std::uint64_t CounterOfFile(const std::string& path, std::string_view key) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  std::array<char, 1024> text{};
  const ssize_t size = read(fd.get(), text.data(), text.size());
  if (size <= 0) return 0;
  return CounterIn({text.data(), static_cast<std::size_t>(size)}, key);
}

}  // namespace

std::uint64_t CounterIn(std::string_view text, std::string_view key) {
  for (const std::string_view line : Split(text, '\n')) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return ParseInt<std::uint64_t>(Trim(line.substr(key.size()))).value_or(0);
    }
  }
  return 0;
}

LimitHits ReadLimitHits(std::span<const std::string> cgroup_directories) {
  LimitHits hits;
  for (const std::string& directory : cgroup_directories) {
    hits.out_of_memory_kills += CounterOfFile(directory + "/memory.events", "oom_kill") +
                                CounterOfFile(directory + "/memory.oom_control", "oom_kill");
    hits.refused_forks += CounterOfFile(directory + "/pids.events", "max");
  }
  return hits;
}

}  // namespace soma::front
