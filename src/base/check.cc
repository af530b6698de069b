// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace soma {
namespace {

void WriteToStderr(std::string_view text) {
  const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  (void)written;  // nowhere left to report to
}

}  // namespace

void CheckFailed(const char* expression, const char* file, int line) {
  char digits[12] = {};
  char* digit = digits + sizeof digits - 1;
  do {
    *--digit = static_cast<char>('0' + line % 10);
    line /= 10;
  } while (line != 0 && digit > digits);
  WriteToStderr("soma: internal error: ");
  WriteToStderr(expression);
  WriteToStderr(" at ");
  WriteToStderr(file);
  WriteToStderr(":");
  WriteToStderr(digit);
  WriteToStderr("\n");
  std::abort();
}

}  // namespace soma
