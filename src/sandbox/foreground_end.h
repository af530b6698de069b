// SPDX-License-Identifier: Apache-2.0
// How a foreground run ended (sandbox/foreground_run.h), and what it was refused. Plain values.
#ifndef SOMA_SANDBOX_FOREGROUND_END_H_
#define SOMA_SANDBOX_FOREGROUND_END_H_

#include <cstdint>
#include <string>

#include "runtime/runtime.h"

namespace soma::sandbox {

// How a command ended, in the numbers of a shell.
struct TaskEnd {
  int exit_code = 0;  // its own; 128+N for signal N; 126 and 127 when it could not be executed
  bool started = true;
  bool timed_out = false;
  std::string how;  // "exit status 7", "signal: killed"; foreign text
};

struct ForegroundEnd {
  TaskEnd task;
  std::string kernel;  // as the guest says
  runtime::LimitHits hits;
  std::uint64_t hidden = 0;  // paths that the policy kept out of the copy
  std::uint64_t other = 0;   // sockets, devices and unreadable files that it lacks
};

// A name or address that the policy does not let out, with the rule that says so and the smallest
// change that would allow it. `what` and `object` are foreign text.
struct RefusedConnect {
  std::string what;    // "connect", "lookup"
  std::string object;  // "example.org:443"
  std::string rule;
  std::string remedy;
  std::uint64_t times = 1;  // since it was told last
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_END_H_
