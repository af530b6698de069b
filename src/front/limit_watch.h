// SPDX-License-Identifier: Apache-2.0
// LimitWatch: which limit a run hit, read from its cgroups' counters while they still exist.
#ifndef SOMA_FRONT_LIMIT_WATCH_H_
#define SOMA_FRONT_LIMIT_WATCH_H_

#include <cstdint>
#include <span>
#include <string>

namespace soma::front {

struct LimitHits {
  std::uint64_t out_of_memory_kills = 0;
  std::uint64_t refused_forks = 0;
  bool timed_out = false;
};

// The sum over all directories of sys::ReadCgroupHits.
LimitHits ReadLimitHits(std::span<const std::string> cgroup_directories);

}  // namespace soma::front

#endif  // SOMA_FRONT_LIMIT_WATCH_H_
