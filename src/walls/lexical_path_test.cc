// SPDX-License-Identifier: Apache-2.0
#include "walls/lexical_path.h"

#include <gtest/gtest.h>

namespace soma::walls {
namespace {

TEST(JoinLexically, CleansAndJoins) {
  EXPECT_EQ(JoinLexically("/work", "a/./b//c/"), "/work/a/b/c");
  EXPECT_EQ(JoinLexically("/work", "/etc//passwd"), "/etc/passwd");
  EXPECT_EQ(JoinLexically("/work/sub", "../../x"), "/x");
  EXPECT_EQ(JoinLexically("/", "../../.."), "/");
  EXPECT_EQ(JoinLexically("/work", ""), "/work");
  EXPECT_EQ(JoinLexically("", "x"), "/x");
}

TEST(SplitPath, GivesParentAndName) {
  EXPECT_EQ(SplitPath("/a/b").parent, "/a");
  EXPECT_EQ(SplitPath("/a/b").name, "b");
  EXPECT_EQ(SplitPath("/a").parent, "/");
  EXPECT_EQ(SplitPath("a").parent, "");
  EXPECT_EQ(SplitPath("/a/b//").name, "b");
  EXPECT_EQ(SplitPath("/").name, "");
}

}  // namespace
}  // namespace soma::walls
