// SPDX-License-Identifier: Apache-2.0
#include "walls/denied.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace soma::walls {
namespace {

Denied Refusal(const std::string& object) {
  return {.command = "cat", .tried = "open for writing", .object = object, .errno_value = 13};
}

TEST(DeniedQueue, CountsEqualRefusalsInARow) {
  DeniedQueue queue(4);
  for (int i = 0; i < 1000; ++i) queue.Push(Refusal("/etc/passwd"));
  queue.Push(Refusal("/etc/shadow"));
  const std::vector<Denied> events = queue.Drain();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].times, 1000U);
  EXPECT_EQ(events[1].object, "/etc/shadow");
  EXPECT_TRUE(queue.empty());
}

TEST(DeniedQueue, CountsWhatItDrops) {
  DeniedQueue queue(4);
  for (int i = 0; i < 10; ++i) queue.Push(Refusal("/" + std::to_string(i)));
  EXPECT_EQ(queue.dropped(), 6U);
  EXPECT_EQ(queue.Drain().size(), 4U);
  queue.Push(Refusal("/again"));
  EXPECT_EQ(queue.Drain().size(), 1U) << "room again after a drain";
  EXPECT_EQ(queue.dropped(), 6U);
}

}  // namespace
}  // namespace soma::walls
