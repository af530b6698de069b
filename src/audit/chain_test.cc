// SPDX-License-Identifier: Apache-2.0
#include "audit/chain.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "audit/head.h"
#include "base/clock.h"

namespace soma::audit {
namespace {

std::string ThreeLines() {
  std::string text;
  Digest previous{};
  for (std::uint64_t n = 0; n < 3; ++n) {
    const FramedLine line = FrameLine(n, previous, "\"x\":1");
    text += line.text;
    previous = line.hash;
  }
  return text;
}

TEST(Chain, ReadsWhatItFrames) {
  const ChainSummary summary = ScanChain(ThreeLines(), 0);
  EXPECT_FALSE(summary.fault);
  EXPECT_EQ(summary.records, 3U);
  EXPECT_EQ(summary.bytes, ThreeLines().size());
  EXPECT_EQ(summary.torn, 0U);
}

TEST(Chain, ALineCutShortIsTornNotAFault) {
  const std::string text = ThreeLines();
  const ChainSummary summary = ScanChain(text.substr(0, text.size() - 1), 0);
  EXPECT_FALSE(summary.fault);
  EXPECT_EQ(summary.records, 2U);
  EXPECT_EQ(summary.torn, text.size() / 3 - 1);
}

// Any flipped bit is found in the record that holds it, or (a record's own newline) there or at
// its end as a torn rest.
TEST(Chain, EveryFlippedBitIsFoundInItsRecord) {
  const std::string text = ThreeLines();
  const std::size_t size = text.size() / 3;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const ChainSummary summary = ScanChain(bad, 0);
      if (i + 1 == text.size()) {
        EXPECT_TRUE(summary.torn > 0 && summary.records == 2) << i;
        continue;
      }
      ASSERT_TRUE(summary.fault) << i << " " << bit;
      EXPECT_EQ(summary.fault->record, i / size);
      EXPECT_EQ(summary.fault->byte_offset, i / size * size);
    }
  }
}

TEST(HeadEntry, RoundTrips) {
  HeadEntry entry;
  entry.time = WallTime(std::chrono::seconds(1'764'440'521));
  entry.change = HeadChange::kSeal;
  entry.segment = 7;
  entry.records = 3;
  entry.bytes = 900;
  entry.tail[5] = 0xab;
  entry.torn = 12;
  entry.next = 9;
  entry.open = {3, 8};
  entry.idle = {1};
  const auto decoded = DecodeHeadEntry(EncodeHeadEntry(entry));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, entry);
  EXPECT_FALSE(DecodeHeadEntry(EncodeHeadEntry(entry) + " "));
}

}  // namespace
}  // namespace soma::audit
