// SPDX-License-Identifier: Apache-2.0
// LauncherUse: a launcher for as long as one command needs it. The one that runs already (a
// service's, or `soma serve`'s) is taken; without one a launcher is started, which other commands
// share, and the last of them stops it. When that one is killed the launcher ends by itself some
// seconds after its sandbox, which ends with the command.
#ifndef SOMA_CLI_LAUNCHER_USE_H_
#define SOMA_CLI_LAUNCHER_USE_H_

#include <string>
#include <utility>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::cli {

class LauncherUse {
 public:
  // Blocks until a launcher answers.
  static Result<LauncherUse> Begin();

  const std::string& socket() const { return socket_; }
  // Once. Stops the launcher when it was started by a command and nobody else uses it.
  Status End();

 private:
  LauncherUse(std::string runtime, std::string log)
      : runtime_(std::move(runtime)), socket_(runtime_ + "/launcher.sock"), log_(std::move(log)) {}

  Status Start();
  void StopUnused();

  std::string runtime_;
  std::string socket_;
  std::string log_;
  Fd gate_;   // locked while somebody starts or stops a launcher
  Fd users_;  // locked, shared, by everybody who uses one
};

}  // namespace soma::cli

#endif  // SOMA_CLI_LAUNCHER_USE_H_
