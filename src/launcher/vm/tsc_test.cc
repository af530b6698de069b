// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/tsc.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace soma::launcher {
namespace {

TEST(Tsc, TwoMeasurementsAgree) {
  const auto first = MeasureTscKhz();
  const auto second = MeasureTscKhz();
  ASSERT_TRUE(first && second);
  const std::uint64_t difference = *first > *second ? *first - *second : *second - *first;
  // A machine under load is preempted between the two readings of a sample: a percent is far above
  // that, and far below what a wrong unit or a stopped counter gives.
  EXPECT_LT(difference, *first / 100);
}

}  // namespace
}  // namespace soma::launcher
