// SPDX-License-Identifier: Apache-2.0
#include "launcher/log.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "base/text.h"

namespace soma::launcher {

void Log(std::string_view line) {
  const std::string text = StrCat("soma-launcher: ", EscapeForTerminal(line), "\n");
  // Nothing could be done about a standard error that can't be written.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace soma::launcher
