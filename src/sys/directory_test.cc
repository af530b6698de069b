// SPDX-License-Identifier: Apache-2.0
#include "sys/directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace soma::sys {
namespace {

// Whether a tree that was made to be hard to remove is gone, and nothing else.
bool RemovesAll() {
  char name[] = "/tmp/soma-remove-XXXXXX";
  if (mkdtemp(name) == nullptr) return false;
  const std::string top(name);
  const std::string outside = top + "-outside";
  const int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool made = mkdir(outside.c_str(), 0700) == 0 && chdir(name) == 0 &&
              symlink(outside.c_str(), "link") == 0;
  for (int i = 0; made && i < 600; ++i) made = mkdir("deep", 0700) == 0 && chdir("deep") == 0;
  made = made && mkdir("closed", 0700) == 0 && mkdir("closed/inner", 0000) == 0 &&
         chmod("closed", 0500) == 0;
  made = fchdir(home) == 0 && made;
  close(home);
  const bool removed = made && RemoveTreeAt(top).has_value();
  const bool outside_left = access(outside.c_str(), F_OK) == 0;
  rmdir(outside.c_str());
  return removed && access(name, F_OK) != 0 && outside_left;
}

TEST(RemoveTree, TakesDeepClosedAndLinkedTrees) {
  if (geteuid() != 0) {
    EXPECT_TRUE(RemovesAll());
    return;
  }
  // No mode stops root: as an ordinary user.
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    const bool other =
        setresgid(kNobody, kNobody, kNobody) == 0 && setresuid(kNobody, kNobody, kNobody) == 0;
    _exit(other && RemovesAll() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace soma::sys
