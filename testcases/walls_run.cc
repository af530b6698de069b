// SPDX-License-Identifier: Apache-2.0
// soma-walls-run: runs one command behind the walls of the level `process`, straight from the
// builder and Launch, without policy, supervisor or record. For the security tests of the walls and
// for bench.
//
//   soma-walls-run [--workspace DIR] [--home DIR] [--hide PATH]… [--read PATH]… [--read-only]
//                  [--second-path] [--explain] [--host-network] [--nproc N] [--memory BYTES --pids
//                  N] [--pty]
//                  [--capture] [--overlay LOWER UPPER WORK] [--file PATH TEXT] -- COMMAND…
//   soma-walls-run --list-switches    the walls that SOMA_TEST_WITHOUT can turn off, one a line
//
// --overlay puts an overlay at /overlay, --file a file of ours over PATH.
// --pty gives the command a terminal of its own and copies it to stdout. --capture accepts one
// connection from inside and says where it was meant to go.
//
// Exit codes as `soma run`. A line "walls: …" on stderr says why nothing started.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "walls/cgroup_sweep.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/test_walls.h"

namespace soma::walls {
namespace {

struct Options {
  ProcessWallsInput input;
  bool second_path = false;
  bool explain = false;
  std::vector<MountItem> more_mounts;
};

// One option; `value` gives the word after it.
template <typename Value>
Status TakeOption(Options& options, std::string_view word, Value value) {
  ProcessWallsInput& input = options.input;
  const auto number = [&]() { return ParseInt<std::uint64_t>(value()).value_or(0); };
  if (word == "--workspace") {
    input.workspace = value();
  } else if (word == "--home") {
    input.home = value();
  } else if (word == "--hide") {
    input.hidden.push_back(value());
  } else if (word == "--read") {
    input.readable.push_back(value());
  } else if (word == "--read-only") {
    input.workspace_read_only = true;
  } else if (word == "--second-path") {
    options.second_path = true;
  } else if (word == "--explain") {
    options.explain = true;
  } else if (word == "--overlay") {
    MountItem item{.kind = MountKind::kOverlay, .target = "/overlay", .lowers = {value()}};
    item.upper = value();
    item.work = value();
    options.more_mounts.push_back(std::move(item));
  } else if (word == "--file") {
    MountItem item{.kind = MountKind::kFile, .target = value(), .mode = 0644};
    item.content = value();
    options.more_mounts.push_back(std::move(item));
  } else if (word == "--host-network") {
    input.network = NetworkKind::kHost;
  } else if (word == "--capture") {
    input.network = NetworkKind::kCapture;
  } else if (word == "--pty") {
    input.terminal = TerminalKind::kPty;
  } else if (word == "--memory") {
    input.cgroup.memory_bytes_max = number();
  } else if (word == "--pids") {
    input.cgroup.pids_max = number();
  } else if (word == "--nproc") {
    input.limits.push_back({RLIMIT_NPROC, number()});
  } else {
    return Fail(Errc::kInvalidArgument, StrCat("unknown option ", EscapeForTerminal(word)));
  }
  return {};
}

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  ProcessWallsInput& input = options.input;
  int at = 1;
  const auto value = [&]() { return std::string(at + 1 < argc ? argv[++at] : ""); };
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    SOMA_TRY(TakeOption(options, argv[at], value));
  }
  for (++at; at < argc; ++at) input.arguments.emplace_back(argv[at]);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SOMA_")) {
      input.environment.emplace_back(*variable);
    }
  }
  if (input.workspace.empty()) return Fail(Errc::kInvalidArgument, "--workspace is missing");
  input.working_directory = input.workspace;
  if (input.cgroup.memory_bytes_max != 0 || input.cgroup.pids_max != 0) {
    input.cgroup.mode = CgroupMode::kCreate;
    input.cgroup.name = walls::TaskCgroupName(::getpid());
  }
  return options;
}

void CopyTerminal(RunningTask& task) {
  const Fd terminal = task.TakeTerminal();
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(terminal.get(), buffer, sizeof buffer)) > 0;) {
    (void)!::write(STDOUT_FILENO, buffer, static_cast<std::size_t>(size));
  }
}

void AcceptOne(RunningTask& task) {
  const CaptureSockets capture = task.TakeCapture();
  const Fd accepted(::accept4(capture.tcp4.get(), nullptr, nullptr, SOCK_CLOEXEC));
  sockaddr_in meant{};
  socklen_t size = sizeof meant;
  ::getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&meant), &size);
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &meant.sin_addr, text, sizeof text);
  std::printf("captured %s:%d\n", text, ntohs(meant.sin_port));
}

Result<int> Run(int argc, char** argv) {
  SOMA_ASSIGN(auto options, ParseOptions(argc, argv));
  SOMA_ASSIGN(options.input.identity, ChooseIdentity(options.input.workspace));
  SOMA_ASSIGN(options.input.system, ReadSystemEntries());
  WallPlan plan = options.second_path ? ProcessWallsWithoutNamespaces(options.input)
                                      : ProcessWalls(options.input);
  plan.mounts.insert(plan.mounts.end(), options.more_mounts.begin(), options.more_mounts.end());
  plan.landlock.rules.push_back({.path = "/overlay",
                                 .rights = sys::kLandlockReadExecute | sys::kLandlockWrite,
                                 .optional = true});
  if (options.explain) {
    for (const std::string& line : Describe(plan)) std::puts(line.c_str());
    return 0;
  }
  SOMA_ASSIGN(auto task, Launch(plan, {}));
  if (plan.terminal == TerminalKind::kPty) CopyTerminal(task);
  if (plan.network == NetworkKind::kCapture) AcceptOne(task);
  const TaskEnd end = task.Wait();
  if (end.kind == TaskEndKind::kNotStarted) {
    std::fprintf(stderr, "walls: %s\n", end.Describe().c_str());
  }
  return end.ExitCode();
}

}  // namespace
}  // namespace soma::walls

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list-switches") {
    for (const std::string_view name : soma::walls::SwitchNames()) {
      std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
    }
    return 0;
  }
  const auto code = soma::walls::Run(argc, argv);
  if (code) return *code;
  std::fprintf(stderr, "walls: %s\n", code.error().message().c_str());
  return 125;
}
