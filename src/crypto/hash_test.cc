// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "crypto/random.h"

namespace soma::crypto {
namespace {

// The vectors of FIPS 180-4's example file.
TEST(Sha256, MatchesPublishedVectors) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, StreamInPiecesEqualsOneShot) {
  const std::string text(1000, 'x');
  Sha256Stream stream;
  for (std::size_t at = 0; at < text.size(); at += 7) {
    stream.Update(AsBytes(std::string_view(text).substr(at, 7)));
  }
  EXPECT_EQ(stream.Finish(), Sha256(text));
}

// RFC 4231, test case 2.
TEST(HmacSha256, MatchesPublishedVector) {
  EXPECT_EQ(Hex(HmacSha256(AsBytes("Jefe"), AsBytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(EqualInConstantTime, ComparesContentAndSize) {
  EXPECT_TRUE(EqualInConstantTime(AsBytes("abc"), AsBytes("abc")));
  EXPECT_FALSE(EqualInConstantTime(AsBytes("abc"), AsBytes("abd")));
  EXPECT_FALSE(EqualInConstantTime(AsBytes("abc"), AsBytes("ab")));
  EXPECT_TRUE(EqualInConstantTime({}, {}));
}

class CountingRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> out) override {
    for (std::uint8_t& byte : out) byte = next++;
  }
  std::uint8_t next = 0x0f;
};

TEST(RandomHex, SpellsTheBytesItWasGiven) {
  CountingRandom random;
  EXPECT_EQ(RandomHex(random, 3), "0f1011");
  EXPECT_EQ(RandomHex(random, 20).size(), 40U);
}

}  // namespace
}  // namespace soma::crypto
