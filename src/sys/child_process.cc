// SPDX-License-Identifier: Apache-2.0
#include "sys/child_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/plain_file.h"
#include "sys/process.h"

namespace soma::sys {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<ProcessIdentity> IdentityOf(pid_t pid) {
  auto stat = ReadWholeFile(StrCat("/proc/", pid, "/stat"), 4096);
  if (!stat) return Fail(Errc::kNotFound, StrCat("there is no process ", pid));
  // The second field is the name in parentheses and may hold anything, parentheses too.
  const std::size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos) return Fail(Errc::kDataLoss, "/proc/PID/stat is malformed");
  constexpr std::size_t kStartTimeAfterName = 20;  // field 22; the split begins with field 2's end
  const auto fields = Split(std::string_view(*stat).substr(name_end + 1), ' ');
  if (fields.size() <= kStartTimeAfterName) {
    return Fail(Errc::kDataLoss, "/proc/PID/stat is malformed");
  }
  const auto ticks = ParseInt<std::uint64_t>(fields[kStartTimeAfterName]);
  if (!ticks) return Fail(Errc::kDataLoss, "/proc/PID/stat is malformed");
  return ProcessIdentity{.pid = pid, .start_ticks = *ticks};
}

Result<Process> OpenProcess(const ProcessIdentity& identity) {
  SOMA_ASSIGN(Process process, Process::Open(identity.pid));
  // Read after the pidfd is held: from here on the number can't be another process's.
  SOMA_ASSIGN(const ProcessIdentity now, IdentityOf(identity.pid));
  if (now != identity) return Fail(Errc::kNotFound, "the process is gone, its number is reused");
  return process;
}

Result<Process> StartProgram(const ProgramOptions& options) {
  FileActions actions;
  for (const PassedFd& passed : options.descriptors) {
    posix_spawn_file_actions_adddup2(actions.get(), passed.fd, passed.inside);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  const int session = options.own_session ? POSIX_SPAWN_SETSID : 0;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, options.path.c_str(), actions.get(), &attributes,
                  Pointers(options.arguments).data(), Pointers(options.environment).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return std::unexpected(Error::FromErrno(error, StrCat("starting ", options.path)));
  }
  // Our own child that nobody has reaped, so the number is still its.
  return Process::Open(pid);
}

Result<std::optional<Process>> ForkProcess() {
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(Error::FromErrno(errno, "fork"));
  if (pid == 0) return std::optional<Process>();
  // Our own child that nobody has reaped, so the number is still its.
  SOMA_ASSIGN(Process child, Process::Open(pid));
  return std::optional<Process>(std::move(child));
}

Status RunProgram(const ProgramOptions& options, std::chrono::milliseconds patience) {
  SOMA_ASSIGN(Process child, StartProgram(options));
  pollfd wait{.fd = child.pidfd().get(), .events = POLLIN, .revents = 0};
  const bool in_time = poll(&wait, 1, static_cast<int>(patience.count())) == 1;
  if (!in_time) child.Signal(SIGKILL);
  SOMA_ASSIGN(const ProcessEnd end, child.Wait());
  if (!in_time) return Fail(Errc::kDeadlineExceeded, StrCat(options.path, " did not end"));
  if (!end.exited || end.code != 0) {
    return Fail(Errc::kInternal,
                StrCat(options.path, end.exited ? " exited with " : " was killed by ", end.code));
  }
  return {};
}

}  // namespace soma::sys
