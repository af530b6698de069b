// SPDX-License-Identifier: Apache-2.0
// Prints the counter's frequency in kHz: for scripts/test-vm, which starts its own machines. Not
// installed.
#include <unistd.h>

#include <string>

#include "base/text.h"
#include "launcher/vm/tsc.h"

int main() {
  const auto khz = soma::launcher::MeasureTscKhz();
  const std::string line =
      khz ? soma::StrCat(*khz, "\n") : soma::StrCat(khz.error().message(), "\n");
  (void)!write(khz ? STDOUT_FILENO : STDERR_FILENO, line.data(), line.size());
  return khz ? 0 : 1;
}
