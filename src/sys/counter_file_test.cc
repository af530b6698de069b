// SPDX-License-Identifier: Apache-2.0
#include "sys/counter_file.h"

#include <gtest/gtest.h>

namespace soma::sys {
namespace {

TEST(CounterIn, ReadsTheNamedLineOnly) {
  EXPECT_EQ(CounterIn("low 1\noom 2\noom_kill 3\n", "oom_kill"), 3U);
  EXPECT_EQ(CounterIn("oom_kill_disable 0\nunder_oom 0\noom_kill 4", "oom_kill"), 4U);
  EXPECT_EQ(CounterIn("max x", "max"), 0U);
  EXPECT_EQ(CounterIn("", "max"), 0U);
}

TEST(ReadCgroupHits, IsZeroWhereThereIsNone) {
  const CgroupHits hits = ReadCgroupHits("/nonexistent");
  EXPECT_EQ(hits.out_of_memory_kills, 0U);
  EXPECT_EQ(hits.refused_forks, 0U);
}

}  // namespace
}  // namespace soma::sys
