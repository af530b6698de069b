// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace soma {
namespace {

TEST(Text, StrCatMixesStringsAndNumbers) { EXPECT_EQ(StrCat("a", 1, '-', -2L, 3U), "a1--23"); }

TEST(Text, ParseIntTakesWholeNumbersOnly) {
  EXPECT_EQ(ParseInt<int>("42"), 42);
  EXPECT_FALSE(ParseInt<int>("42 "));
  EXPECT_FALSE(ParseInt<int>(""));
  EXPECT_FALSE(ParseInt<unsigned>("-1"));
  EXPECT_FALSE(ParseInt<std::uint8_t>("256"));
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ',').size(), 3U);
  EXPECT_EQ(Split("", ',').size(), 1U);
}

TEST(Text, HexRoundTrip) {
  const std::vector<std::uint8_t> bytes = {0, 15, 16, 255};
  EXPECT_EQ(Hex(bytes), "000f10ff");
  EXPECT_EQ(ParseHex("000F10ff"), bytes);
  EXPECT_FALSE(ParseHex("0"));
  EXPECT_FALSE(ParseHex("0g"));
}

TEST(Text, EscapeMakesForeignBytesHarmless) {
  EXPECT_EQ(EscapeForTerminal("plain äö"), "plain äö");
  EXPECT_EQ(EscapeForTerminal("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(EscapeForTerminal("\xff\\"), "\\xff\\\\");
  EXPECT_EQ(EscapeForTerminal("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  EXPECT_EQ(EscapeForTerminal("\xc2\x9b"), "\\xc2\\x9b");           // C1 CSI
}

TEST(Text, Utf8IsStrict) {
  EXPECT_TRUE(IsValidUtf8("aß→😀"));
  EXPECT_FALSE(IsValidUtf8("\xc0\x80"));      // overlong
  EXPECT_FALSE(IsValidUtf8("\xed\xa0\x80"));  // surrogate
  EXPECT_FALSE(IsValidUtf8("\xf4\x90\x80\x80"));
}

}  // namespace
}  // namespace soma
