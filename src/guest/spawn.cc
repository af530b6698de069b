// SPDX-License-Identifier: Apache-2.0
#include "guest/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/task_landlock.h"
#include "sys/capability_set.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "sys/process.h"
#include "sys/pseudo_terminal.h"
#include "sys/seccomp.h"
#include "walls/seccomp_profile.h"

namespace soma::guest {
namespace {

enum class Step : std::uint8_t {
  kSession,
  kStreams,
  kBounds,
  kFilter,
  kUser,
  kWorkdir,
  kLandlock,
  kExecute
};

struct Failure {
  Step step = Step::kSession;
  int error = 0;
};

// All that the child needs, made before the fork: between fork and exec nothing allocates.
struct Prepared {
  const SpawnOptions& options;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::optional<sys::LandlockRuleset> landlock;
  std::optional<sys::SeccompProgram> filter;
  bool filter_before_user = false;  // without no_new_privs, by CAP_SYS_ADMIN
  int report = -1;
};

constexpr std::uint64_t Bit(int capability) { return std::uint64_t{1} << capability; }

// design.md §2, measured.md K.
constexpr std::uint64_t kRootedBounds =
    Bit(CAP_CHOWN) | Bit(CAP_DAC_OVERRIDE) | Bit(CAP_FOWNER) | Bit(CAP_FSETID) | Bit(CAP_SETUID) |
    Bit(CAP_SETGID) | Bit(CAP_SETPCAP) | Bit(CAP_SETFCAP) | Bit(CAP_KILL) | Bit(CAP_SYS_CHROOT) |
    Bit(CAP_NET_BIND_SERVICE) | Bit(CAP_NET_RAW);

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

int SetUpSession(const SpawnOptions& options) noexcept {
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(S_IWGRP | S_IWOTH);
  if (::setsid() < 0) return errno;
  return options.terminal ? sys::TakeControllingTerminal(options.standard_input) : 0;
}

// The three may be any numbers, 0 to 2 included, so they are moved out of the way first.
int SetUpStreams(const SpawnOptions& options) noexcept {
  std::array<int, 3> from = {options.standard_input, options.standard_output,
                             options.standard_error};
  for (int& fd : from) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
    if (fd < 0) return errno;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (::dup2(from[i], static_cast<int>(i)) < 0) return errno;
  }
  return 0;
}

int BoundPrivileges(Profile profile) noexcept {
  if (profile == Profile::kStrict) {
    if (const int error = sys::BoundCapabilities(0); error != 0) return error;
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
  }
  return sys::BoundCapabilities(kRootedBounds);
}

// Where the agent isn't root (tests, rootless) the only user there is is its own.
int BecomeUser(const User& user) noexcept {
  if (::geteuid() != 0) return ::geteuid() == user.uid ? 0 : EPERM;
  // EPERM: an identity map of a single id forbids it for ever, and there are no groups to drop.
  if (::setgroups(user.groups.size(), user.groups.data()) != 0 && errno != EPERM) return errno;
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return errno;
  return ::setresuid(user.uid, user.uid, user.uid) == 0 ? 0 : errno;
}

int LoadFilter(const Prepared& prepared, bool before_user) noexcept {
  if (!prepared.filter || prepared.filter_before_user != before_user) return 0;
  return sys::LoadSeccomp(*prepared.filter);
}

int EnterLandlock(const Prepared& prepared) noexcept {
  if (!prepared.landlock) return 0;
  return sys::LandlockRestrictSelf(prepared.landlock->fd().get());
}

[[noreturn]] void RunChild(const Prepared& prepared) noexcept {
  const SpawnOptions& options = prepared.options;
  Failure failure;
  const auto run = [&](Step step, int error) {
    if (failure.error != 0) return false;
    failure = {.step = step, .error = error};
    return error == 0;
  };
  const bool ready = run(Step::kSession, SetUpSession(options)) &&
                     run(Step::kStreams, SetUpStreams(options)) &&
                     run(Step::kFilter, LoadFilter(prepared, true)) &&
                     run(Step::kBounds, BoundPrivileges(options.profile)) &&
                     run(Step::kUser, BecomeUser(options.user)) &&
                     run(Step::kWorkdir, ::chdir(options.workdir.c_str()) == 0 ? 0 : errno) &&
                     run(Step::kLandlock, EnterLandlock(prepared)) &&
                     run(Step::kFilter, LoadFilter(prepared, false));
  if (ready) {
    environ = const_cast<char**>(prepared.environment.data());
    ::execvpe(prepared.arguments[0], prepared.arguments.data(), environ);
    failure = {.step = Step::kExecute, .error = errno};
  }
  [[maybe_unused]] const auto written = ::write(prepared.report, &failure, sizeof failure);
  ::_exit(127);
}

Error ToError(const Failure& failure, const SpawnOptions& options) {
  switch (failure.step) {
    case Step::kExecute:
      return Error::FromErrno(failure.error, StrCat("cannot execute '", options.arguments[0], "'"));
    case Step::kWorkdir:
      if (failure.error == ENOENT || failure.error == ENOTDIR) {
        return Error(Errc::kInvalidArgument, StrCat("cwd '", options.workdir, "' does not exist"));
      }
      return Error::FromErrno(failure.error, StrCat("cwd '", options.workdir, "'"));
    case Step::kSession:
      return Error::FromErrno(failure.error, "making the task's session");
    case Step::kStreams:
      return Error::FromErrno(failure.error, "setting up standard streams");
    case Step::kBounds:
      return Error::FromErrno(failure.error, "dropping capabilities");
    case Step::kFilter:
      return Error::FromErrno(failure.error, "loading the seccomp filter");
    case Step::kLandlock:
      return Error::FromErrno(failure.error, "entering the task's Landlock domain");
    case Step::kUser:
      return Error::FromErrno(failure.error, StrCat("becoming user '", options.user.name, "'"));
  }
  return Error(Errc::kInternal, "unknown step");
}

void ChooseFilter(Prepared& prepared) {
  using walls::SeccompNotify;
  using walls::SeccompProfile;
  if (prepared.options.profile == Profile::kStrict) {
    prepared.filter = walls::ProgramFor(SeccompProfile::kStrict, SeccompNotify::kNone);
  } else if (sys::HasCapability(CAP_SYS_ADMIN)) {
    prepared.filter = walls::ProgramFor(SeccompProfile::kRooted, SeccompNotify::kNone);
    prepared.filter_before_user = true;
  }
}

}  // namespace

std::optional<Profile> ParseProfile(std::string_view name) {
  if (name == "strict") return Profile::kStrict;
  if (name == "rooted") return Profile::kRooted;
  return std::nullopt;
}

Result<sys::Process> Spawn(const SpawnOptions& options) {
  if (options.arguments.empty() || options.arguments[0].empty()) {
    return Fail(Errc::kInvalidArgument, "no command");
  }
  std::array<int, 2> raw{};
  if (::pipe2(raw.data(), O_CLOEXEC) != 0) {
    return std::unexpected(Error::FromErrno(errno, "pipe2"));
  }
  const Fd reading(raw[0]);
  Fd writing(raw[1]);
  Prepared prepared{.options = options,
                    .arguments = Pointers(options.arguments),
                    .environment = Pointers(options.environment),
                    .report = writing.get()};
  ChooseFilter(prepared);
  if (options.profile == Profile::kStrict) {
    SOMA_ASSIGN(prepared.landlock, StrictLandlock(options.user, options.workdir));
  }
  const sys::CloneResult child = sys::Clone(0);
  if (child.error != 0) return std::unexpected(Error::FromErrno(child.error, "clone"));
  if (child.pid == 0) RunChild(prepared);
  sys::Process process(child.pid, Fd(child.pidfd));
  writing.Reset();
  Failure failure;
  ssize_t got = 0;
  do {
    got = ::read(reading.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return process;
  (void)process.Wait();
  return std::unexpected(ToError(failure, options));
}

}  // namespace soma::guest
