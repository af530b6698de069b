// SPDX-License-Identifier: Apache-2.0
// The command line of `soma run`. A small parser of our own: the program is static and starts in a
// millisecond.
//
// Options stand before the command; "--" ends them, and so does the first word that is no option.
// An option's value is the next word or stands behind "=" ("--memory=1G"). Short switches may be
// joined
// ("-it").
#ifndef SOMA_FRONT_ARGUMENTS_H_
#define SOMA_FRONT_ARGUMENTS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/load.h"

namespace soma::front {

struct RunOptions {
  policy::CommandLineRules rules;
  std::vector<std::string> policy_files;  // --policy, in order
  std::optional<std::string> workspace;   // -C; none: the current directory
  std::optional<std::string> report;      // --report FILE
  bool json = false;                      // the summary as one line of JSON
  bool explain = false;                   // print the plan, run nothing
  bool quiet = false;                     // no summary
  bool terminal = false;                  // -t
  bool interactive = false;               // -i: accepted for habit's sake; stdin is always passed
  bool help = false;
  std::vector<std::string> command;
};

// kInvalidArgument names the option. A missing command is an error unless --help is there.
Result<RunOptions> ParseRunArguments(std::span<const std::string_view> arguments);

// The text of `soma run --help`.
std::string_view RunHelp();

}  // namespace soma::front

#endif  // SOMA_FRONT_ARGUMENTS_H_
