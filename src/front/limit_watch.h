// SPDX-License-Identifier: Apache-2.0
// LimitWatch: which limit a run hit, read from its cgroups' counters while they still exist.
#ifndef SOMA_FRONT_LIMIT_WATCH_H_
#define SOMA_FRONT_LIMIT_WATCH_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace soma::front {

struct LimitHits {
  std::uint64_t out_of_memory_kills = 0;
  std::uint64_t refused_forks = 0;
  bool timed_out = false;
};

// Reads memory.events (v2) or memory.oom_control (v1) and pids.events (both) of each directory. A
// file that is missing counts as zero.
LimitHits ReadLimitHits(std::span<const std::string> cgroup_directories);

// The number behind `key` in lines of "key number"; 0 when there is none. For tests.
std::uint64_t CounterIn(std::string_view text, std::string_view key);

}  // namespace soma::front

#endif  // SOMA_FRONT_LIMIT_WATCH_H_
