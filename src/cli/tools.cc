// SPDX-License-Identifier: Apache-2.0
#include "cli/tools.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace soma::cli {

namespace {

// CLI11 reports by exceptions; they end here.
int ParseAndRun(CLI::App& tools, int argc, char** argv, const Context& context) {
  try {
    tools.parse(argc, argv);
    return context.exit_code;
  } catch (const CLI::Success& help) {
    return tools.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> extra = tools.remaining(true);
    Complain(extra.empty() ? std::string(error.what())
                           : StrCat("'", extra.front(), "' is not known here"));
    Complain("--help shows what is understood");
    return kExitFailure;
  } catch (const std::exception& error) {
    Complain(error.what());
    return kExitFailure;
  }
}

}  // namespace

int RunTools(int argc, char** argv, Clock& clock, Random& random) {
  Context context{.clock = clock, .random = random};
  CLI::App tools("Soma: a body for AI agents. See 'soma run --help' for running a command.",
                 "soma");
  tools.set_version_flag("--version", "soma " SOMA_VERSION);
  tools.add_flag("--json", context.json, "Print JSON instead of text");
  tools.footer(
      "Example:\n  soma run -- make test\n"
      "Exit codes: 0; 1 for \"no\" or \"damaged\" as the answer; 125 for a failure. soma run: the "
      "command's own.");
  tools.require_subcommand(1);
  AddAudit(tools, context);
  AddDoctor(tools, context);
  AddEgressBroker(tools, context);
  AddKey(tools, context);
  AddRun(tools, context);
  AddTemplate(tools, context);
  AddServe(tools, context);
  AddPolicy(tools, context);
  const int code = ParseAndRun(tools, argc, argv, context);
  // A reader that went away (a closed pipe) or a full disk: the answer did not arrive. An earlier
  // flush may have met it, so the stream is asked as well. CLI11 prints its help through iostreams.
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return code;
  Complain("standard output can't be written: what was asked for did not arrive whole");
  return code == kExitFine ? kExitFailure : code;
}

}  // namespace soma::cli
