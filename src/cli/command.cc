// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace soma::cli {

void PrintLine(std::string_view line) {
  (void)std::fwrite(line.data(), 1, line.size(), stdout);
  (void)std::fputc('\n', stdout);
}

void Complain(std::string_view text) {
  const std::string safe = StrCat("soma: ", EscapeForTerminal(text), "\n");
  (void)std::fflush(stdout);
  (void)std::fwrite(safe.data(), 1, safe.size(), stderr);
}

void FailWith(Context& context, const Error& error) {
  Complain(error.message());
  context.exit_code = kExitFailure;
}

std::string JsonText(std::string_view bytes) {
  std::string out = "\"";
  const std::string valid = IsValidUtf8(bytes) ? std::string(bytes) : EscapeForTerminal(bytes);
  for (const char c : valid) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[static_cast<std::uint8_t>(c) >> 4];
      out += kDigits[static_cast<std::uint8_t>(c) & 0xf];
    } else {
      out += c;
    }
  }
  return out + '"';
}

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& help,
                     std::string_view example) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer(StrCat("Example:\n  ", example));
  // Options of the program itself (--json) may also stand after the command's name.
  command->fallthrough();
  return command;
}

}  // namespace soma::cli
