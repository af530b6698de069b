// SPDX-License-Identifier: Apache-2.0
// Parent: the launcher's half that never reads a byte from anybody. It binds and keeps the
// listening sockets (connects queue while the worker is away), starts the worker, starts it again
// when it dies, and reaps what the dead leave.
#ifndef SOMA_LAUNCHER_PARENT_H_
#define SOMA_LAUNCHER_PARENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/messages.h"
#include "launcher/paths.h"

namespace soma::launcher {

struct ParentOptions {
  Paths paths;
  std::string program;  // this program, to start the worker from
  std::uint32_t server_uid = 0;
  // The lock under which clients look for a launcher; empty where it never leaves by itself.
  std::string gate;
  std::vector<std::string> listen;  // "127.0.0.1:3000", "[::1]:3000": for the server
  std::vector<std::string> worker_arguments;
  std::vector<std::string> worker_environment;
};

// The worker's descriptors.
inline constexpr int kWorkerListener = 3;
inline constexpr int kWorkerStop = 4;  // end of file: end every sandbox and leave
inline constexpr int kWorkerGate = 5;  // where there is one (WorkerOptions::gate)
inline constexpr int kWorkerFirstHttp = 6;

// Returns after SIGTERM or SIGINT, when the worker has ended every sandbox, or when the worker has
// left because nobody needed it (WorkerOptions::idle_exit). kUnavailable when
// another launcher holds this state directory.
Status RunParent(const ParentOptions& options);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_PARENT_H_
