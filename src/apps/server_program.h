// SPDX-License-Identifier: Apache-2.0
// What soma-server's main composes: options in, exit code out.
#ifndef SOMA_APPS_SERVER_PROGRAM_H_
#define SOMA_APPS_SERVER_PROGRAM_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "api/api.h"

namespace soma::apps {

struct ServerOptions {
  std::string listen = "127.0.0.1:3000";
  std::string level = "auto";
  std::string default_user = "user";
  std::uint64_t memory_mib = 512;
  std::uint64_t disk_mib = 1024;
  std::size_t sandboxes_max = 200;
  pid_t parent = 0;  // ends with this one, which started it; 0: with nobody
  api::ApiOptions api;
};

// Serves until SIGTERM or SIGINT; 0 then, 125 when it could not start. Before it reads a foreign
// byte it has no privilege left: no capability, no way to get one, the seccomp profile `server`,
// and, where root started it, the user of sys/service_user.h. Call it before the first thread.
int RunServer(const ServerOptions& options);

}  // namespace soma::apps

#endif  // SOMA_APPS_SERVER_PROGRAM_H_
