// SPDX-License-Identifier: Apache-2.0
#include "sys/service_user.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/capability_set.h"
#include "sys/plain_file.h"
#include "sys/process.h"
#include "sys/session_keyring.h"

namespace soma::sys {
namespace {

std::unexpected<Error> FailErrno(std::string_view what) {
  return std::unexpected(Error::FromErrno(errno, what));
}

// Root's own until now, so nobody else has put anything there.
Status GiveAway(const std::string& path) {
  std::error_code error;
  for (auto at = std::filesystem::recursive_directory_iterator(path, error);
       !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (::lchown(at->path().c_str(), kServiceUser, kServiceUser) != 0) {
      return FailErrno(StrCat("chown ", at->path().string()));
    }
  }
  if (error) return std::unexpected(Error::FromErrno(error.value(), StrCat("listing ", path)));
  if (::lchown(path.c_str(), kServiceUser, kServiceUser) != 0) {
    return FailErrno(StrCat("chown ", path));
  }
  return {};
}

}  // namespace

bool HasServiceUser() {
  if (::geteuid() != 0) return false;
  constexpr std::uint64_t kMapBytesMax = 64UL * 1024;  // 340 lines, user_namespaces(7)
  const auto map = ReadWholeFile("/proc/self/uid_map", kMapBytesMax);
  if (!map) return false;
  for (const std::string_view line : Split(*map, '\n')) {
    std::vector<std::uint64_t> numbers;
    for (const std::string_view word : Split(line, ' ')) {
      if (const auto number = ParseInt<std::uint64_t>(word)) numbers.push_back(*number);
    }
    if (numbers.size() == 3 && numbers[0] <= kServiceUser &&
        kServiceUser - numbers[0] < numbers[2]) {
      return true;
    }
  }
  return false;
}

Status BecomeServiceUser() {
  LeaveSessionKeyring();
  if (const int failed = BoundCapabilities(0); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "bounding the capabilities"));
  }
  if (HasServiceUser()) {
    if (::setgroups(0, nullptr) != 0) return FailErrno("setgroups");
    if (::setresgid(kServiceUser, kServiceUser, kServiceUser) != 0) return FailErrno("setresgid");
    if (::setresuid(kServiceUser, kServiceUser, kServiceUser) != 0) return FailErrno("setresuid");
  }
  if (const int failed = SetCapabilities(0); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "dropping the capabilities"));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("PR_SET_NO_NEW_PRIVS");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return FailErrno("PR_SET_DUMPABLE");
  return {};
}

Status MakeServiceDirectory(const std::string& path) {
  if (!HasServiceUser()) return MakeDirectories(path, 0700);
  const std::string parent = path.substr(0, path.rfind('/'));
  constexpr mode_t kPassThrough = 0711;
  SOMA_TRY(MakeDirectories(parent, kPassThrough));
  struct stat info{};
  if (::lstat(parent.c_str(), &info) != 0) return FailErrno(StrCat("stat ", parent));
  constexpr mode_t kSearch = S_IXGRP | S_IXOTH;
  if (info.st_uid == 0 && (info.st_mode & kSearch) != kSearch &&
      ::chmod(parent.c_str(), (info.st_mode | kSearch) & ALLPERMS) != 0) {
    return FailErrno(StrCat("chmod ", parent));
  }
  SOMA_TRY(MakeDirectories(path, 0700));
  if (::lstat(path.c_str(), &info) != 0) return FailErrno(StrCat("stat ", path));
  if (info.st_uid == kServiceUser) return {};
  if (info.st_uid != 0) {
    return Fail(
        Errc::kFailedPrecondition,
        StrCat(path, " belongs to user ", info.st_uid,
               ", not to root or to Soma's service: give it to root (chown -R 0:0), or name "
               "another state directory by SOMA_STATE_DIR"));
  }
  return GiveAway(path);
}

Result<ActAsServiceUser> ActAsServiceUser::Begin() {
  if (!HasServiceUser()) return ActAsServiceUser(false);
  if (::setegid(kServiceUser) != 0) return FailErrno("setegid");
  if (::seteuid(kServiceUser) != 0) {
    const int why = errno;
    SOMA_CHECK(::setegid(0) == 0);
    return std::unexpected(Error::FromErrno(why, "seteuid"));
  }
  return ActAsServiceUser(true);
}

ActAsServiceUser::~ActAsServiceUser() {
  if (active_) SOMA_CHECK(::seteuid(0) == 0 && ::setegid(0) == 0);
}

Status EndWithParent(pid_t parent, int signal) {
  if (const int failed = DieWithParent(signal); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "PR_SET_PDEATHSIG"));
  }
  if (::getppid() != parent) return Fail(Errc::kCancelled, "the program that started this is gone");
  return {};
}

}  // namespace soma::sys
