// SPDX-License-Identifier: Apache-2.0
// soma-walls-run: runs one command behind the walls of the level `process`, straight from the
// builder and Launch, without policy, supervisor or record. For the security tests of the walls and
// for bench.
//
//   soma-walls-run [--workspace DIR] [--home DIR] [--hide PATH]… [--read PATH]… [--read-only]
//                  [--second-path] [--explain] [--host-network] [--nproc N] -- COMMAND…
//
// Exit codes as `soma run`. A line "walls: …" on stderr says why nothing started.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/process_walls.h"

namespace soma::walls {
namespace {

struct Options {
  ProcessWallsInput input;
  bool second_path = false;
  bool explain = false;
  bool init = true;
};

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  ProcessWallsInput& input = options.input;
  int at = 1;
  const auto value = [&]() { return std::string(at + 1 < argc ? argv[++at] : ""); };
  for (; at < argc; ++at) {
    const std::string_view word = argv[at];
    if (word == "--") break;
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
    } else if (word == "--host-network") {
      input.network = NetworkKind::kHost;
    } else if (word == "--nproc") {
      input.limits.push_back({RLIMIT_NPROC, ParseInt<std::uint64_t>(value()).value_or(0)});
    } else {
      return Fail(Errc::kInvalidArgument, StrCat("unknown option ", EscapeForTerminal(word)));
    }
  }
  for (++at; at < argc; ++at) input.arguments.emplace_back(argv[at]);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SOMA_"))
      input.environment.emplace_back(*variable);
  }
  if (input.workspace.empty()) return Fail(Errc::kInvalidArgument, "--workspace is missing");
  input.working_directory = input.workspace;
  return options;
}

Result<int> Run(int argc, char** argv) {
  SOMA_ASSIGN(auto options, ParseOptions(argc, argv));
  SOMA_ASSIGN(options.input.identity, ChooseIdentity(options.input.workspace));
  SOMA_ASSIGN(options.input.system, ReadSystemEntries());
  const WallPlan plan = options.second_path ? ProcessWallsWithoutNamespaces(options.input)
                                            : ProcessWalls(options.input);
  if (options.explain) {
    for (const std::string& line : Describe(plan)) std::puts(line.c_str());
    return 0;
  }
  SOMA_ASSIGN(auto task, Launch(plan, {}));
  const TaskEnd end = task.Wait();
  if (end.kind == TaskEndKind::kNotStarted) {
    std::fprintf(stderr, "walls: %s\n", end.Describe().c_str());
  }
  return end.ExitCode();
}

}  // namespace
}  // namespace soma::walls

int main(int argc, char** argv) {
  const auto code = soma::walls::Run(argc, argv);
  if (code) return *code;
  std::fprintf(stderr, "walls: %s\n", code.error().message().c_str());
  return 125;
}
