// SPDX-License-Identifier: Apache-2.0
#include "sys/counter_file.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "sys/plain_file.h"

namespace soma::sys {

namespace {

std::uint64_t CounterOfFile(const std::string& path, std::string_view key) {
  constexpr std::uint64_t kBytesMax = 4096;
  return CounterIn(ReadWholeFile(path, kBytesMax).value_or(std::string()), key);
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

CgroupHits ReadCgroupHits(const std::string& directory) {
  return {.out_of_memory_kills = CounterOfFile(directory + "/memory.events", "oom_kill") +
                                 CounterOfFile(directory + "/memory.oom_control", "oom_kill"),
          .refused_forks = CounterOfFile(directory + "/pids.events", "max")};
}

}  // namespace soma::sys
