// SPDX-License-Identifier: Apache-2.0
// become_root: as a set-user-id program, what sudo does first. Prints the effective user and exits
// 0 when it is root.
#include <unistd.h>

#include <cstdio>

int main() {
  const bool root = setresuid(0, 0, 0) == 0 && geteuid() == 0;
  std::printf("euid=%u\n", geteuid());
  return root ? 0 : 1;
}
