// SPDX-License-Identifier: Apache-2.0
#include "policy/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

#include "policy/document.h"
#include "policy/load.h"

namespace soma::policy {
namespace {

using ::testing::ElementsAre;

void ExpectSame(const Node& a, const Node& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.line, b.line) << a.key;
  EXPECT_EQ(a.text, b.text) << a.key;
  EXPECT_EQ(a.integer, b.integer) << a.key;
  ASSERT_EQ(a.items.size(), b.items.size()) << a.key;
  ASSERT_EQ(a.members.size(), b.members.size()) << a.key;
  for (std::size_t i = 0; i < a.items.size(); ++i) ExpectSame(a.items[i], b.items[i]);
  for (std::size_t i = 0; i < a.members.size(); ++i) ExpectSame(a.members[i], b.members[i]);
}

TEST(Builtin, TheProfilesParsedByTheBuildAreTheirText) {
  EXPECT_THAT(BuiltinProfiles(), ElementsAre("dev", "enterprise", "consumer"));
  for (const std::string_view name : BuiltinProfiles()) {
    SCOPED_TRACE(name);
    const auto built = BuiltinDocument(name);
    const auto parsed = ParseTomlDocument(*BuiltinProfileText(name), name);
    ASSERT_TRUE(built && parsed);
    ExpectSame(*built, *parsed);
  }
}

TEST(Builtin, AnotherNameIsNoProfile) {
  EXPECT_FALSE(BuiltinDocument("none"));
  EXPECT_FALSE(BuiltinProfileText("none"));
}

}  // namespace
}  // namespace soma::policy
