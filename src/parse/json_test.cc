// SPDX-License-Identifier: Apache-2.0
#include "parse/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace soma::parse {
namespace {

TEST(Json, ReadsAndWritesEveryKind) {
  const std::string text = R"({"a":[1,-2,2.5,true,false,null,"x\"\\\n"],"b":{},"c":[]})";
  const auto parsed = ParseJson(text);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->Write(), text);
  EXPECT_EQ((*parsed->Find("a")->AsArray())[1].AsInt(), -2);
}

TEST(Json, RefusesANameGivenTwice) {
  const auto parsed = ParseJson(R"({"a":{"k":1,"k":2}})");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message().find("\"k\" is given twice"), std::string::npos);
}

TEST(Json, RefusesWhatIsNotOneDocument) {
  for (const char* text : {"", "{", "{} {}", "[1,]", "{'a':1}", "nul", "\"\xff\"", "01", "[1] x"}) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
}

TEST(Json, BoundsDepthSizeAndNumberOfValues) {
  EXPECT_TRUE(ParseJson(std::string(32, '[') + std::string(32, ']')));
  EXPECT_FALSE(ParseJson(std::string(33, '[') + std::string(33, ']')));
  EXPECT_FALSE(ParseJson("[1,2,3]", {.bytes_max = 6}));
  EXPECT_FALSE(ParseJson("[1,2,3]", {.values_max = 3}));
  EXPECT_TRUE(ParseJson("[1,2,3]", {.values_max = 4}));
  EXPECT_FALSE(ParseJson(R"({"a":1,"b":2})", {.members_max = 1}));
}

TEST(Json, WritesForeignBytesAsValidText) {
  EXPECT_EQ(Json("a\xff\x01z").Write(), "\"a\xEF\xBF\xBD\\u0001z\"");
  EXPECT_EQ(Json("\xE2\x82\xAC").Write(), "\"\xE2\x82\xAC\"");
}

TEST(Json, LargeUnsignedBecomesADouble) {
  EXPECT_FALSE(Json(std::uint64_t{1} << 63).AsInt());
  EXPECT_EQ(Json(std::uint64_t{7}).AsInt(), 7);
}

TEST(Json, OptionalMembersNameWhatIsWrong) {
  const auto parsed =
      ParseJson(R"({"s":"x","n":3,"m":{"a":"b"},"bad":{"a":1},"l":["p"],"z":null})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(OptionalString(*parsed, "s").value(), "x");
  EXPECT_FALSE(OptionalString(*parsed, "absent").value());
  EXPECT_FALSE(OptionalString(*parsed, "z").value());
  EXPECT_EQ(OptionalInt(*parsed, "n").value(), 3);
  EXPECT_EQ(OptionalStringMap(*parsed, "m").value().at(0).second, "b");
  EXPECT_EQ(OptionalStringList(*parsed, "l").value().at(0), "p");
  EXPECT_EQ(OptionalString(*parsed, "n").error().message(), "\"n\" must be a string, not a number");
  EXPECT_EQ(OptionalStringMap(*parsed, "bad").error().message(),
            "\"bad.a\" must be a string, not a number");
}

}  // namespace
}  // namespace soma::parse
