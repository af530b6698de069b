// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

#include "base/bytes.h"
#include "base/clock.h"
#include "parse/base64.h"
#include "parse/timestamp.h"

namespace soma::parse {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
  const char* plain[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
  const char* coded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(Base64Encode(AsBytes(plain[i])), coded[i]);
    const auto decoded = Base64Decode(coded[i]);
    ASSERT_TRUE(decoded) << coded[i];
    EXPECT_EQ(AsText(*decoded), plain[i]);
  }
  EXPECT_EQ(AsText(*Base64Decode("Zg")), "f");
}

TEST(Base64, RefusesWhatNoEncoderWrites) {
  for (const char* text : {"Z", "Zg=", "Zh==", "Z===", "Zm9v=", "Zm 9", "Zm-_"}) {
    EXPECT_FALSE(Base64Decode(text)) << text;
  }
}

TEST(Timestamp, FormatsAndParses) {
  const WallTime time(std::chrono::microseconds(1'795'975'800'123'456LL));
  EXPECT_EQ(FormatTimestamp(time), "2026-11-29T18:10:00.123Z");
  EXPECT_EQ(ParseTimestamp("2026-11-29T18:10:00.123456789Z"), time);
  EXPECT_EQ(ParseTimestamp("2026-11-29T19:10:00.123456+01:00"), time);
  EXPECT_EQ(FormatTimestamp(WallTime()), "1970-01-01T00:00:00.000Z");
}

TEST(Timestamp, RefusesOtherForms) {
  for (const char* text : {"", "2026-11-29", "2026-13-29T18:10:00Z", "2026-02-30T00:00:00Z",
                           "2026-11-29T18:10:00", "2026-11-29T18:10:00.Z", "2026-11-29T25:10:00Z",
                           "2026-11-29T18:10:00Zx", "+026-11-29T18:10:00Z"}) {
    EXPECT_FALSE(ParseTimestamp(text)) << text;
  }
}

}  // namespace
}  // namespace soma::parse
