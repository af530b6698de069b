// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

// The bug that the demo's agent mends.
static long sum(long a, long b) { return a - b; }

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  printf("%ld\n", sum(atol(argv[1]), atol(argv[2])));
  return 0;
}
