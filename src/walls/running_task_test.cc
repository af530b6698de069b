// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "walls/launch.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

TaskEnd NotStarted(Step step, int errno_value) {
  return {.kind = TaskEndKind::kNotStarted, .failure = {.step = step, .errno_value = errno_value}};
}

TEST(TaskEnd, SaysItsExitCodeAsAShellWould) {
  EXPECT_EQ((TaskEnd{.kind = TaskEndKind::kExited, .code = 3}).ExitCode(), 3);
  EXPECT_EQ((TaskEnd{.kind = TaskEndKind::kSignalled, .code = SIGTERM}).ExitCode(), 143);
  EXPECT_EQ(NotStarted(Step::kExecute, ENOENT).ExitCode(), 127);
  EXPECT_EQ(NotStarted(Step::kExecute, EACCES).ExitCode(), 126);
  EXPECT_EQ(NotStarted(Step::kWorkingDirectory, ENOENT).ExitCode(), 125);
  EXPECT_EQ(TaskEnd{}.ExitCode(), 137);
}

TEST(TaskEnd, DescribesItselfInWords) {
  EXPECT_EQ((TaskEnd{.kind = TaskEndKind::kExited, .code = 3}).Describe(), "exited with 3");
  EXPECT_EQ((TaskEnd{.kind = TaskEndKind::kSignalled, .code = SIGSEGV}).Describe(),
            "killed by SIGSEGV");
  EXPECT_EQ(NotStarted(Step::kExecute, ENOENT).Describe(), "execute: ENOENT");
}

}  // namespace
}  // namespace soma::walls
