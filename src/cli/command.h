// SPDX-License-Identifier: Apache-2.0
// What the commands of soma-tools share. A command is one file: `void AddX(CLI::App&, Context&)`
// declares its options, help and example, and sets a callback that does the work.
//
// Commands print results to standard output and say what went wrong on standard error in one line
// each, "soma: …". With --json standard output is one JSON document, or JSON lines for streams.
// Exit codes: 0 fine, 1 the answer is "no" (a damaged journal, a failed check), 125 our own failure
// or wrong usage, as with container tools.
#ifndef SOMA_CLI_COMMAND_H_
#define SOMA_CLI_COMMAND_H_

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose the name
class App;
}

namespace soma::cli {

inline constexpr int kExitFine = 0;
inline constexpr int kExitNo = 1;
inline constexpr int kExitFailure = 125;

// Lives from main to the end of the program.
struct Context {
  Clock& clock;
  Random& random;
  // What the program returns.
  int exit_code = kExitFine;
  // --json was given, before or after the command's name.
  bool json = false;
};

// Writes to standard output, with a newline.
void PrintLine(std::string_view line);
// "soma: TEXT" to standard error; foreign bytes in it are made safe to print.
void Complain(std::string_view text);
// Complains and sets the exit code to kExitFailure.
void FailWith(Context& context, const Error& error);

// A JSON string literal; bytes that are not valid UTF-8 are spelled as EscapeForTerminal does.
std::string JsonText(std::string_view bytes);

// Adds a subcommand with one line of help and an example that is shown below the options.
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& help,
                     std::string_view example);

}  // namespace soma::cli

#endif  // SOMA_CLI_COMMAND_H_
