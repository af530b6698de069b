// SPDX-License-Identifier: Apache-2.0
#include "front/arguments.h"

#include <array>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::front {

namespace {

struct ValueOption {
  std::string_view name;
  char letter;  // 0: none
  void (*store)(RunOptions&, std::string);
};

constexpr std::array<ValueOption, 12> kValueOptions = {{
    {"isolation", 0, [](RunOptions& o, std::string v) { o.rules.isolation = std::move(v); }},
    {"profile", 0, [](RunOptions& o, std::string v) { o.rules.profile = std::move(v); }},
    {"policy", 0, [](RunOptions& o, std::string v) { o.policy_files.push_back(std::move(v)); }},
    {"workspace", 'C', [](RunOptions& o, std::string v) { o.workspace = std::move(v); }},
    {"allow-net", 0,
     [](RunOptions& o, std::string v) { o.rules.allow_net.push_back(std::move(v)); }},
    {"read", 0, [](RunOptions& o, std::string v) { o.rules.read.push_back(std::move(v)); }},
    {"write", 0, [](RunOptions& o, std::string v) { o.rules.write.push_back(std::move(v)); }},
    {"env", 'e', [](RunOptions& o, std::string v) { o.rules.set_env.push_back(std::move(v)); }},
    {"memory", 0, [](RunOptions& o, std::string v) { o.rules.memory = std::move(v); }},
    {"pids", 0, [](RunOptions& o, std::string v) { o.rules.pids = std::move(v); }},
    {"timeout", 0, [](RunOptions& o, std::string v) { o.rules.time = std::move(v); }},
    {"report", 0, [](RunOptions& o, std::string v) { o.report = std::move(v); }},
}};

struct Switch {
  std::string_view name;
  char letter;
  bool RunOptions::* field;
};

constexpr std::array<Switch, 6> kSwitches = {{
    {"json", 0, &RunOptions::json},
    {"explain", 0, &RunOptions::explain},
    {"quiet", 'q', &RunOptions::quiet},
    {"tty", 't', &RunOptions::terminal},
    {"interactive", 'i', &RunOptions::interactive},
    {"help", 'h', &RunOptions::help},
}};

std::unexpected<Error> BadOption(std::string_view option, std::string_view why) {
  return Fail(Errc::kInvalidArgument, StrCat(EscapeForTerminal(option), why));
}

class Parser {
 public:
  explicit Parser(std::span<const std::string_view> arguments) : left_(arguments) {}

  Result<RunOptions> Parse() {
    while (!left_.empty() && left_.front().size() > 1 && left_.front().front() == '-') {
      const std::string_view word = left_.front();
      left_ = left_.subspan(1);
      if (word == "--") break;
      if (word.starts_with("--")) {
        SOMA_TRY(ParseLong(word));
      } else {
        SOMA_TRY(ParseShort(word));
      }
    }
    options_.command.assign(left_.begin(), left_.end());
    if (options_.command.empty() && !options_.help) {
      return Fail(Errc::kInvalidArgument,
                  "no command given: soma run [OPTIONS] -- COMMAND [ARGUMENTS]");
    }
    if (!options_.help && options_.command.front().empty()) {
      return Fail(Errc::kInvalidArgument, "the command is an empty word");
    }
    return std::move(options_);
  }

 private:
  Result<std::string> TakeValue(std::string_view option) {
    if (left_.empty()) return BadOption(option, " needs a value");
    std::string value(left_.front());
    left_ = left_.subspan(1);
    return NotEmpty(option, std::move(value));
  }

  // An empty value is a variable that was not set, never something that is meant.
  static Result<std::string> NotEmpty(std::string_view option, std::string value) {
    if (value.empty()) return BadOption(option, " needs a value that is not empty");
    return value;
  }

  Status ParseLong(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name =
        word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    for (const Switch& one : kSwitches) {
      if (one.name != name) continue;
      if (equals != std::string_view::npos) return BadOption(word, " takes no value");
      options_.*one.field = true;
      return {};
    }
    for (const ValueOption& one : kValueOptions) {
      if (one.name != name) continue;
      if (equals != std::string_view::npos) {
        SOMA_ASSIGN(std::string value,
                    NotEmpty(word.substr(0, equals), std::string(word.substr(equals + 1))));
        one.store(options_, std::move(value));
        return {};
      }
      SOMA_ASSIGN(std::string value, TakeValue(word));
      one.store(options_, std::move(value));
      return {};
    }
    return BadOption(word, " is no option of soma run (see soma run --help)");
  }

  Status ParseShort(std::string_view word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      if (SetSwitch(word[i])) continue;
      const ValueOption* option = FindValueOption(word[i]);
      if (option == nullptr) {
        return BadOption(StrCat("-", word[i]), " is no option of soma run (see soma run --help)");
      }
      std::string value(word.substr(i + 1));
      if (value.empty()) {
        SOMA_ASSIGN(value, TakeValue(word));
      }
      option->store(options_, std::move(value));
      return {};
    }
    return {};
  }

  bool SetSwitch(char letter) {
    for (const Switch& one : kSwitches) {
      if (one.letter != letter) continue;
      options_.*one.field = true;
      return true;
    }
    return false;
  }

  static const ValueOption* FindValueOption(char letter) {
    for (const ValueOption& one : kValueOptions) {
      if (one.letter == letter) return &one;
    }
    return nullptr;
  }

  std::span<const std::string_view> left_;
  RunOptions options_;
};

}  // namespace

Result<RunOptions> ParseRunArguments(std::span<const std::string_view> arguments) {
  return Parser(arguments).Parse();
}

std::string_view RunHelp() {
  return R"(soma run - run one command inside walls

usage: soma run [OPTIONS] [--] COMMAND [ARGUMENTS...]

The command sees the system read-only, the workspace (the current directory) writable, a private and
empty home directory, /tmp and /dev, and no network. What it was refused is listed at the end, with the
smallest change that would allow it.

Where and what:
  -C, --workspace DIR      the directory that may be written (default: the current one)
      --read PATH          show PATH as well, read-only ("~/..." works)
      --write PATH         show PATH as well, writable
      --allow-net TARGET   allow connections: HOST, *.HOST, ADDRESS or NETWORK, with :PORT
  -e, --env NAME=VALUE     set a variable; of the caller's only harmless ones are passed

Policy:
      --profile NAME       dev (default), enterprise or consumer
      --policy FILE        one more policy file, TOML or .json (after system, user and project file)
      --isolation LEVEL    auto, none, process (default), container, gvisor, microvm, confidential,
                           emulated; "none" puts no wall around the command, and is recorded

Limits:
      --memory SIZE        such as 512M        --pids N             processes and threads
      --timeout TIME       such as 90s, 1h30m; the command is killed then (exit code 137)

Terminal and output:
  -t, --tty                give it a terminal of its own (default when stdin and stdout are one)
  -i, --interactive        pass stdin (always done)
      --report FILE        write how it went, with every refusal, to FILE as JSON
      --json               print the same on standard error, in place of the lines for a person
                           (standard output is the command's alone)
  -q, --quiet              print no list of refusals
      --explain            print the walls that would be built, run nothing
  -h, --help               this text

Exit codes: the command's own; 128+N if signal N ended it; 125 soma could not do its part, 126 the
command can't be executed, 127 it was not found.

Examples:
  soma run -- make test
  soma run --allow-net pypi.org --allow-net files.pythonhosted.org -- pip install -r requirements.txt
  soma run -C ~/src/app --memory 2G --timeout 10m -it -- bash
  soma run --profile consumer --policy my.toml --report report.json -- ./agent
)";
}

}  // namespace soma::front
