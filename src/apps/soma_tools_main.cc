// SPDX-License-Identifier: Apache-2.0
// soma-tools: see cli/tools.h.
#include "cli/tools.h"
#include "sys/real_clock.h"

int main(int argc, char** argv) {
  soma::sys::RealClock clock;
  soma::sys::RealRandom random;
  return soma::cli::RunTools(argc, argv, clock, random);
}
