// SPDX-License-Identifier: Apache-2.0
// LaunchedRuntime: the levels whose sandboxes a launcher starts (container, emulated, microvm):
// from here they differ by one word. This side names a template and numbers; what stands around a
// sandbox is the launcher's business.
#ifndef SOMA_RUNTIME_LAUNCHED_LAUNCHED_RUNTIME_H_
#define SOMA_RUNTIME_LAUNCHED_LAUNCHED_RUNTIME_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/result.h"
#include "control/messages.h"
#include "runtime/launched/control_connection.h"
#include "runtime/runtime.h"
#include "sys/fd.h"

namespace soma::runtime {

// The connection to a launcher, made again when its worker was restarted. Shared by everything that
// asks it.
class Launcher {
 public:
  // Makes a connection, as ConnectControl does.
  using Connector = std::function<aio::Task<Fd>()>;

  Launcher(aio::Loop& loop, std::string socket_path);
  // For whoever may not reach the socket's path.
  Launcher(aio::Loop& loop, Connector connect) : loop_(loop), connect_(std::move(connect)) {}

  aio::Task<ControlConnection::Answer> Ask(control::Request request,
                                           std::chrono::nanoseconds timeout);
  // The listening sockets that it holds for the server's faces.
  aio::Task<std::vector<Fd>> Sockets();
  aio::Loop& loop() { return loop_; }

 private:
  aio::Loop& loop_;
  Connector connect_;
  std::shared_ptr<ControlConnection> connection_;
};

class LaunchedRuntime final : public Runtime {
 public:
  LaunchedRuntime(std::shared_ptr<Launcher> launcher, control::Level level)
      : launcher_(std::move(launcher)), level_(level) {}

  std::string_view level() const override { return control::LevelName(level_); }
  Capabilities capabilities() const override;
  aio::Task<std::unique_ptr<SandboxHandle>> Start(StartRequest request) override;
  aio::Task<std::vector<std::string>> List() override;
  aio::Task<std::unique_ptr<SandboxHandle>> Attach(std::string sandbox_id,
                                                   GuardToken token) override;
  aio::Task<void> StopUnknown(std::string sandbox_id) override;

 private:
  std::shared_ptr<Launcher> launcher_;
  control::Level level_;
};

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_LAUNCHED_LAUNCHED_RUNTIME_H_
