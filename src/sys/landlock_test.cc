// SPDX-License-Identifier: Apache-2.0
#include "sys/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sys/fd.h"
#include "sys/process.h"

namespace soma::sys {
namespace {

TEST(LandlockKnown, DropsWhatAnAbiDoesNotHave) {
  const LandlockHandled all{.fs = kLandlockAllFs,
                            .net = kLandlockBindTcp | kLandlockConnectTcp,
                            .scoped = kLandlockScopeSignal};
  EXPECT_EQ(LandlockKnown(all, 0).fs, 0U);
  EXPECT_EQ(LandlockKnown(all, 1).fs, (1U << 13) - 1);
  EXPECT_EQ(LandlockKnown(all, 2).fs, (1U << 14) - 1) << "REFER";
  EXPECT_EQ(LandlockKnown(all, 3).fs, (1U << 15) - 1) << "TRUNCATE";
  EXPECT_EQ(LandlockKnown(all, 3).net, 0U);
  EXPECT_EQ(LandlockKnown(all, 4).net, all.net);
  EXPECT_EQ(LandlockKnown(all, 4).fs, (1U << 15) - 1);
  EXPECT_EQ(LandlockKnown(all, 5).fs, kLandlockAllFs) << "IOCTL_DEV";
  EXPECT_EQ(LandlockKnown(all, 5).scoped, 0U);
  EXPECT_EQ(LandlockKnown(all, 6).scoped, all.scoped);
  EXPECT_EQ(LandlockKnown({.fs = kLandlockExecute}, 99).fs, kLandlockExecute)
      << "never more than asked";
}

int OpenFor(const std::string& path, int flags) {
  const Fd file(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  return file ? 0 : errno;
}

// Live: a directory that may be read, one that may be written, a file rule, and everything else.
TEST(LandlockRuleset, RefusesWhatNoRuleAllows) {
  if (LandlockAbi() == 0) GTEST_SKIP() << "this kernel has no Landlock";
  std::string folder = std::filesystem::temp_directory_path() / "soma-landlock-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const char* name : {"/read", "/write", "/none"}) {
    std::filesystem::create_directory(folder + name);
    ASSERT_EQ(OpenFor(folder + name + "/file", O_WRONLY | O_CREAT), 0);
  }
  auto ruleset = LandlockRuleset::Create({.fs = kLandlockAllFs});
  ASSERT_TRUE(ruleset);
  const Fd read(::open((folder + "/read").c_str(), O_PATH | O_CLOEXEC));
  const Fd write(::open((folder + "/write").c_str(), O_PATH | O_CLOEXEC));
  const Fd file(::open((folder + "/none/file").c_str(), O_PATH | O_CLOEXEC));
  ASSERT_TRUE(ruleset->AllowPath(read.get(), kLandlockRead));
  ASSERT_TRUE(ruleset->AllowPath(write.get(), kLandlockRead | kLandlockWrite));
  ASSERT_TRUE(ruleset->AllowPath(file.get(), kLandlockRead | kLandlockWrite))
      << "directory rights are left out";
  const CloneResult child = Clone(0);
  if (child.pid == 0) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        LandlockRestrictSelf(ruleset->fd().get()) != 0)
      ::_exit(1);
    if (OpenFor(folder + "/read/file", O_RDONLY) != 0) ::_exit(2);
    if (OpenFor(folder + "/read/file", O_WRONLY) != EACCES) ::_exit(3);
    if (OpenFor(folder + "/read/new", O_WRONLY | O_CREAT) != EACCES) ::_exit(4);
    if (OpenFor(folder + "/write/new", O_WRONLY | O_CREAT) != 0) ::_exit(5);
    if (OpenFor(folder + "/none/file", O_RDWR) != 0) ::_exit(6);
    if (OpenFor(folder + "/none", O_RDONLY | O_DIRECTORY) != EACCES) ::_exit(7);
    ::_exit(0);
  }
  const Fd pidfd(child.pidfd);
  int status = 0;
  ASSERT_EQ(::waitpid(child.pid, &status, 0), child.pid);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the number of the check that failed";
}

}  // namespace
}  // namespace soma::sys
