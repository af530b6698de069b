// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/programs.h"
#include "runtime/launched/control_connection.h"
#include "sys/child_process.h"
#include "sys/plain_file.h"
#include "sys/process.h"
#include "sys/soma_paths.h"

namespace soma::cli {
namespace {

using sys::LockKind;

// Longer than a launcher's start and stop together.
constexpr std::chrono::seconds kGatePatience{120};
constexpr std::chrono::seconds kUsersPatience{10};
// A command that is killed stops nothing; its launcher sees that nobody is left.
constexpr std::chrono::seconds kIdleExit{10};
constexpr std::uint64_t kLogBytesMax = 1 << 20;

// Names the launcher that a command has started, so that another command can stop it.
std::string StartedPath(const std::string& runtime) { return runtime + "/run-launcher"; }

Result<sys::Process> StartedLauncher(const std::string& runtime) {
  SOMA_ASSIGN(const std::string text, sys::ReadWholeFile(StartedPath(runtime), 64));
  const std::vector<std::string_view> words = Split(text, ' ');
  if (words.size() != 2) return Fail(Errc::kDataLoss, "run-launcher is malformed");
  const auto pid = ParseInt<pid_t>(words[0]);
  const auto ticks = ParseInt<std::uint64_t>(words[1]);
  if (!pid || !ticks) return Fail(Errc::kDataLoss, "run-launcher is malformed");
  return sys::OpenProcess({.pid = *pid, .start_ticks = *ticks});
}

std::string LastLine(const std::string& path) {
  std::string text = sys::ReadWholeFile(path, kLogBytesMax).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return EscapeForTerminal(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Result<LauncherUse> LauncherUse::Begin() {
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  SOMA_ASSIGN(std::string runtime, sys::RuntimeDirectory());
  SOMA_TRY(sys::MakeDirectories(state, 0700));
  SOMA_TRY(sys::MakeDirectories(runtime, 0700));
  LauncherUse use(std::move(runtime), state + "/run-launcher.log");
  SOMA_ASSIGN(use.gate_, sys::OpenFile(sys::RunGatePath(use.runtime_), O_RDWR | O_CREAT));
  SOMA_ASSIGN(use.users_, sys::OpenFile(use.runtime_ + "/run-users.lock", O_RDWR | O_CREAT));
  SOMA_TRY(sys::LockWithin(use.gate_, LockKind::kExclusive, kGatePatience));
  if (!runtime::ConnectControl(use.socket_)) SOMA_TRY(use.Start());
  SOMA_TRY(sys::LockWithin(use.users_, LockKind::kShared, kUsersPatience));
  SOMA_TRY(sys::Unlock(use.gate_));
  return use;
}

Status LauncherUse::Start() {
  // Its words go into a file: they are no part of what the command prints, and a stream of ours
  // that it held would stay open for as long as others use it.
  SOMA_ASSIGN(const Fd log, sys::OpenFile(log_, O_RDWR | O_CREAT | O_TRUNC));
  SOMA_ASSIGN(sys::Process launcher,
              StartBeside({.name = "soma-launcher",
                           .arguments = {"--ready", "0", "--idle-exit", StrCat(kIdleExit.count())},
                           .detached_to = log.get()}));
  SOMA_ASSIGN(const sys::ProcessIdentity identity, sys::IdentityOf(launcher.pid()));
  const std::string name = StrCat(identity.pid, " ", identity.start_ticks);
  Status status = sys::WriteFileAtomically(StartedPath(runtime_), AsBytes(name));
  if (status) status = WaitForLauncher(socket_, launcher);
  if (!status) {
    StopProgram(launcher);
    return Fail(status.error().code(), StrCat(status.error().message(), ": ", LastLine(log_)));
  }
  return {};
}

Status LauncherUse::End() {
  SOMA_TRY(sys::LockWithin(gate_, LockKind::kExclusive, kGatePatience));
  SOMA_TRY(sys::Unlock(users_));
  SOMA_ASSIGN(const bool unused, sys::TryLock(users_, LockKind::kExclusive));
  if (unused) StopUnused();
  return sys::Unlock(gate_);
}

void LauncherUse::StopUnused() {
  auto started = StartedLauncher(runtime_);
  // Otherwise the launcher is a service's, which outlives us.
  if (started) StopProgram(*started);
  (void)::unlink(StartedPath(runtime_).c_str());
}

}  // namespace soma::cli
