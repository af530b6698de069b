// SPDX-License-Identifier: Apache-2.0
#include "front/limit_watch.h"

#include <span>
#include <string>

#include "sys/counter_file.h"

namespace soma::front {

LimitHits ReadLimitHits(std::span<const std::string> cgroup_directories) {
  LimitHits hits;
  for (const std::string& directory : cgroup_directories) {
    const sys::CgroupHits one = sys::ReadCgroupHits(directory);
    hits.out_of_memory_kills += one.out_of_memory_kills;
    hits.refused_forks += one.refused_forks;
  }
  return hits;
}

}  // namespace soma::front
