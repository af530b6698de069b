// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace soma::wire {
namespace {

FrameHeader Example() {
  return {.type = FrameType::kData,
          .flags = kFlagMore,
          .epoch = 7,
          .length = 12,
          .payload_sum = 0xdeadbeef,
          .sequence = 1ULL << 40,
          .acknowledged = 99};
}

TEST(Frame, HeaderComesBack) {
  const auto raw = EncodeFrameHeader(Example());
  const auto header = DecodeFrameHeader(raw);
  ASSERT_TRUE(header);
  EXPECT_EQ(*header, Example());
}

TEST(Frame, EveryFlippedBitIsFound) {
  const auto raw = EncodeFrameHeader(Example());
  for (std::size_t bit = 0; bit < raw.size() * 8; ++bit) {
    auto damaged = raw;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    EXPECT_FALSE(DecodeFrameHeader(damaged)) << "bit " << bit;
  }
}

TEST(Frame, LengthBeyondTheLimitIsRefused) {
  FrameHeader header = Example();
  header.length = kFramePayloadMax + 1;
  EXPECT_FALSE(DecodeFrameHeader(EncodeFrameHeader(header)));
}

TEST(Frame, HelloComesBackAndFindsDamage) {
  HelloPayload payload{.value = 5};
  payload.secret.fill(1);
  payload.next_secret.fill(2);
  Bytes raw = EncodeHello(FrameType::kHello, kFlagFresh, 3, payload);
  ASSERT_EQ(raw.size(), kHelloFrameSize);
  const auto hello = DecodeHello(raw);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->payload, payload);
  EXPECT_EQ(hello->header.epoch, 3U);
  raw.back() ^= 1;
  EXPECT_FALSE(DecodeHello(raw));
}

TEST(Frame, ChecksumDependsOnLengthOfZeroes) {
  EXPECT_NE(Checksum(Bytes(8)), Checksum(Bytes(16)));
  EXPECT_NE(Checksum(Bytes(1)), Checksum(Bytes(2)));
}

}  // namespace
}  // namespace soma::wire
