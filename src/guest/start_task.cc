// SPDX-License-Identifier: Apache-2.0
#include "guest/start_task.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/loop.h"
#include "guest/settings.h"
#include "guest/spawn.h"
#include "guest/task.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/process.h"
#include "sys/pseudo_terminal.h"
#include "wire/record.h"
#include "wire/request.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

// What a login gives: the path of Debian's /etc/profile for root, which is right for all here.
constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// E2B: "processes get oom_score_adj 100", so that the kernel takes them before the agent.
constexpr const char* kOomScore = "100";

// Both sides of a task's streams; the task's side is closed after the spawn.
struct Streams {
  TaskStreams ours;
  Fd input;
  Fd output;
  Fd error;
};

Status SetNonBlocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return std::unexpected(Error::FromErrno(errno, "fcntl"));
  }
  return {};
}

// A pipe whose one end, ours, doesn't block.
Status MakePipe(Fd& reading, Fd& writing, const Fd& ours) {
  std::array<int, 2> raw{};
  if (::pipe2(raw.data(), O_CLOEXEC) != 0) {
    return std::unexpected(Error::FromErrno(errno, "pipe2"));
  }
  reading = Fd(raw[0]);
  writing = Fd(raw[1]);
  return SetNonBlocking(ours);
}

Result<Streams> MakePipes(bool with_input) {
  Streams streams;
  if (with_input) {
    SOMA_TRY(MakePipe(streams.input, streams.ours.input, streams.ours.input));
  } else {
    SOMA_ASSIGN(streams.input, sys::OpenFile("/dev/null", O_RDONLY));
  }
  SOMA_TRY(MakePipe(streams.ours.output, streams.output, streams.ours.output));
  SOMA_TRY(MakePipe(streams.ours.error, streams.error, streams.ours.error));
  return streams;
}

Result<Streams> MakeTerminal(const User& user, wire::TerminalSize size) {
  const sys::TerminalPair pair = sys::OpenTerminalPair("/dev/ptmx");
  if (pair.error != 0) return std::unexpected(Error::FromErrno(pair.error, "opening a terminal"));
  Streams streams;
  streams.ours.terminal = Fd(pair.master);
  streams.input = Fd(pair.slave);
  SOMA_TRY(sys::SetWindowSize(streams.ours.terminal, {.rows = size.rows, .columns = size.columns}));
  // Not the group: `tty` need not exist inside, and nobody else writes to it.
  if (::geteuid() == 0 && ::fchown(streams.input.get(), user.uid, static_cast<gid_t>(-1)) != 0) {
    return std::unexpected(Error::FromErrno(errno, "giving the terminal to the user"));
  }
  SOMA_TRY(SetNonBlocking(streams.ours.terminal));
  return streams;
}

bool IsVariable(const wire::KeyValue& variable) {
  return !variable.key.empty() &&
         variable.key.find_first_of(std::string("=\0", 2)) == std::string::npos &&
         variable.value.find('\0') == std::string::npos;
}

bool HasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

wire::TaskInfo Describe(const wire::Start& start, const std::string& workdir) {
  return {.tag = start.tag,
          .arguments = start.arguments,
          .environment = start.environment,
          .workdir = workdir,
          .has_terminal = start.has_terminal};
}

// Best effort: it makes the kernel's choice better, nothing depends on it.
void LowerForOom(const sys::Process& process) {
  const auto fd = sys::OpenFile(StrCat("/proc/", process.pid(), "/oom_score_adj"), O_WRONLY);
  if (fd) static_cast<void>(sys::WriteAll(*fd, AsBytes(kOomScore)));
}

Result<std::string> Workdir(const wire::Start& start, const Settings& settings, const User& user) {
  if (start.workdir.empty()) {
    return settings.default_workdir.empty() ? user.home : settings.default_workdir;
  }
  // Relative to the home, not to the default workdir (E2B).
  return Settings{}.Resolve(user, start.workdir);
}

}  // namespace

std::vector<std::string> TaskEnvironment(const User& user, const Settings& settings,
                                         const std::vector<wire::KeyValue>& own) {
  std::map<std::string, std::string> variables = {
      {"PATH", kDefaultPath}, {"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
  for (const auto* list : {&settings.environment, &own}) {
    for (const wire::KeyValue& variable : *list) {
      if (IsVariable(variable)) variables[variable.key] = variable.value;
    }
  }
  std::vector<std::string> out;
  out.reserve(variables.size());
  for (const auto& [key, value] : variables) out.push_back(StrCat(key, "=", value));
  return out;
}

Result<std::unique_ptr<Task>> StartTask(const wire::Start& start, const Settings& settings,
                                        Loop& loop, wire::Session& session) {
  const auto profile = ParseProfile(start.profile);
  if (!profile) {
    return Fail(Errc::kInvalidArgument, StrCat("unknown task profile '", start.profile, "'"));
  }
  for (const std::string& argument : start.arguments) {
    if (HasNul(argument)) return Fail(Errc::kInvalidArgument, "an argument with a NUL byte");
  }
  const Accounts accounts = Accounts::Load();
  SOMA_ASSIGN(const User user, settings.ActingUser(accounts, start.user));
  SOMA_ASSIGN(const std::string workdir, Workdir(start, settings, user));
  SOMA_ASSIGN(Streams streams,
              start.has_terminal ? MakeTerminal(user, start.terminal) : MakePipes(start.has_stdin));
  const int input = streams.input.get();
  SOMA_ASSIGN(sys::Process process,
              Spawn({.profile = *profile,
                     .user = user,
                     .arguments = start.arguments,
                     .environment = TaskEnvironment(user, settings, start.environment),
                     .workdir = workdir,
                     .standard_input = input,
                     .standard_output = start.has_terminal ? input : streams.output.get(),
                     .standard_error = start.has_terminal ? input : streams.error.get(),
                     .terminal = start.has_terminal}));
  LowerForOom(process);
  wire::TaskInfo info = Describe(start, workdir);
  info.pid = static_cast<std::uint32_t>(process.pid());
  auto task = std::make_unique<Task>(loop, session, std::move(info), std::move(process));
  SOMA_TRY(task->Connect(std::move(streams.ours)));
  return task;
}

}  // namespace soma::guest
