// SPDX-License-Identifier: Apache-2.0
// The kernel's files of counters, a line "name number" each: memory.events, pids.events and their
// like (cgroup-v2.rst, cgroup-v1/memory.rst).
#ifndef SOMA_SYS_COUNTER_FILE_H_
#define SOMA_SYS_COUNTER_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace soma::sys {

// The number behind `key` in such a text; 0 when there is none.
std::uint64_t CounterIn(std::string_view text, std::string_view key);

// How often the limits of one cgroup were hit. A file that is missing counts as zero.
struct CgroupHits {
  std::uint64_t out_of_memory_kills = 0;
  std::uint64_t refused_forks = 0;
};
// Reads memory.events (v2) or memory.oom_control (v1) and pids.events (both) in `directory`.
CgroupHits ReadCgroupHits(const std::string& directory);

}  // namespace soma::sys

#endif  // SOMA_SYS_COUNTER_FILE_H_
