// SPDX-License-Identifier: Apache-2.0
#include "policy/units.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "policy/level.h"

namespace soma::policy {
namespace {

using std::chrono::milliseconds;

TEST(ByteCount, ReadsSuffixes) {
  EXPECT_EQ(ParseByteCount("1"), 1U);
  EXPECT_EQ(ParseByteCount("64K"), 65536U);
  EXPECT_EQ(ParseByteCount("512m"), 512U << 20);
  EXPECT_EQ(ParseByteCount("2GiB"), 2ULL << 30);
}

TEST(ByteCount, RefusesWhatItDoesNotUnderstand) {
  for (const char* text :
       {"", "0", "M", "1X", "1 M", "-1", "1MBB", "99999999999999999999", "9999999999T"}) {
    EXPECT_EQ(ParseByteCount(text), std::nullopt) << text;
  }
}

TEST(ByteCount, FormatsRoundTrip) {
  for (const std::uint64_t value : {1ULL, 1023ULL, 1024ULL, 1ULL << 20, 3ULL << 30, 12345678ULL}) {
    EXPECT_EQ(ParseByteCount(FormatByteCount(value)), value);
  }
}

TEST(Duration, ReadsUnits) {
  EXPECT_EQ(ParseDuration("30"), milliseconds(30'000));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("1h30m"), milliseconds(5'400'000));
}

TEST(Duration, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"", "0", "0s", "m", "1x", "1h30", "400d", "-5s", "1 s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Duration, FormatsRoundTrip) {
  for (const int value : {1, 999, 1000, 61'000, 5'400'000, 86'400'001}) {
    EXPECT_EQ(ParseDuration(FormatDuration(milliseconds(value))), milliseconds(value));
  }
}

TEST(Level, EmulatedNeverStandsForHardware) {
  EXPECT_TRUE(Satisfies(Level::kEmulated, Level::kContainer));
  EXPECT_FALSE(Satisfies(Level::kEmulated, Level::kGvisor));
  EXPECT_FALSE(Satisfies(Level::kEmulated, Level::kMicrovm));
  EXPECT_TRUE(Satisfies(Level::kMicrovm, Level::kProcess));
  EXPECT_FALSE(Satisfies(Level::kNone, Level::kProcess));
}

TEST(Level, NamesRoundTrip) {
  for (const Level level : {Level::kNone, Level::kProcess, Level::kContainer, Level::kEmulated,
                            Level::kGvisor, Level::kMicrovm, Level::kConfidential}) {
    EXPECT_EQ(ParseLevel(LevelName(level)), level);
  }
  EXPECT_EQ(ParseLevel("vm"), std::nullopt);
}

}  // namespace
}  // namespace soma::policy
