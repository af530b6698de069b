// SPDX-License-Identifier: Apache-2.0
#include "launcher/remove_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace soma::launcher {
namespace {

TEST(RemoveTree, TakesDeepClosedAndLinkedTrees) {
  char name[] = "/tmp/soma-remove-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string top(name);
  const std::string outside = top + "-outside";
  ASSERT_EQ(mkdir(outside.c_str(), 0700), 0);
  const int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(chdir(name), 0);
  ASSERT_EQ(symlink(outside.c_str(), "link"), 0);
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(mkdir("deep", 0700), 0);
    ASSERT_EQ(chdir("deep"), 0);
  }
  ASSERT_EQ(mkdir("closed", 0000), 0);
  ASSERT_EQ(fchdir(home), 0);
  close(home);
  RemoveTree(top);
  EXPECT_NE(access(name, F_OK), 0);
  EXPECT_EQ(access(outside.c_str(), F_OK), 0) << "a symlink was followed";
  rmdir(outside.c_str());
}

}  // namespace
}  // namespace soma::launcher
