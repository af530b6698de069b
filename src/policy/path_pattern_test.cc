// SPDX-License-Identifier: Apache-2.0
#include "policy/path_pattern.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace soma::policy {
namespace {

TEST(MatchPrefix, PlainPatternsNameWholeComponents) {
  EXPECT_EQ(MatchPrefix("/home/u", "/home/u"), 7U);
  EXPECT_EQ(MatchPrefix("/home/u", "/home/u/x"), 7U);
  EXPECT_EQ(MatchPrefix("/home/u", "/home/user"), std::nullopt);
  EXPECT_EQ(MatchPrefix("/", "/etc"), 1U);
}

TEST(MatchPrefix, StarStaysInsideItsComponent) {
  EXPECT_EQ(MatchPrefix("/w/*.pem", "/w/a.pem"), 8U);
  EXPECT_EQ(MatchPrefix("/w/*.pem", "/w/a.pem/deep"), 8U);
  EXPECT_EQ(MatchPrefix("/w/*.pem", "/w/d/a.pem"), std::nullopt);
  EXPECT_EQ(MatchPrefix("/w/a*b*c", "/w/aXbYbc"), 9U);
}

TEST(MatchPrefix, DoubleStarCrossesComponents) {
  EXPECT_EQ(MatchPrefix("/w/**/.env", "/w/.env"), 7U);
  EXPECT_EQ(MatchPrefix("/w/**/.env", "/w/a/b/.env"), 11U);
  EXPECT_EQ(MatchPrefix("/w/**/.env", "/w/a/env"), std::nullopt);
  EXPECT_EQ(MatchPrefix("/w/**", "/w/a/b"), 6U);
  EXPECT_EQ(MatchPrefix("/**", "/"), 1U);
}

TEST(MatchPrefix, HostilePatternsStayCheap) {
  std::string pattern;
  std::string path;
  for (int i = 0; i < 300; ++i) {
    pattern += "/**/*a*a*b";
    path += "/aaaaaaaaaa";
  }
  EXPECT_EQ(MatchPrefix(pattern, path), std::nullopt);
}

TEST(IsWithin, ComparesComponents) {
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
  EXPECT_FALSE(IsWithin("/", "/a"));
}

}  // namespace
}  // namespace soma::policy
