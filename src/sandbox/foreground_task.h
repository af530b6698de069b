// SPDX-License-Identifier: Apache-2.0
// ForegroundTask: one command inside a sandbox whose standard streams and signals are those of this
// process. Streams are passed on as they come, without loss: when nobody reads our output the
// command waits, as it would at a pipe.
#ifndef SOMA_SANDBOX_FOREGROUND_TASK_H_
#define SOMA_SANDBOX_FOREGROUND_TASK_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "runtime/guest_link.h"
#include "sandbox/foreground_end.h"
#include "wire/message.h"

namespace soma::sandbox {

class ForegroundTask {
 public:
  // `link` outlives it. `start` says what to run; its terminal's size is filled in here.
  // `raw_terminal` is waited for once a command that has a terminal runs, before it is given input.
  ForegroundTask(aio::Loop& loop, runtime::GuestLink& link, wire::Start start,
                 std::function<aio::Task<void>()> raw_terminal);

  // Runs it to its end. Once. An error means that the sandbox was lost or that the guest refused
  // for a reason that isn't the command's.
  aio::Task<TaskEnd> Run();

  // Passes on a signal that has reached us (SIGWINCH: the terminal's new size). One that comes
  // while the command is being started waits until it runs.
  aio::Task<void> Forward(int signal);

 private:
  struct Sink {
    int fd;
    bool gone = false;
  };

  aio::Task<TaskEnd> Follow(std::shared_ptr<runtime::GuestChannel> channel);
  aio::Task<void> Emit(wire::DataKind kind, Bytes bytes);
  aio::Job PumpInput();
  aio::Task<void> EndInput();
  wire::TaskSelector Selector() const { return {.pid = pid_, .tag = {}}; }

  aio::Loop& loop_;
  runtime::GuestLink& link_;
  wire::Start start_;
  std::function<aio::Task<void>()> raw_terminal_;
  std::uint32_t pid_ = 0;
  std::vector<int> pending_;  // signals that came before it ran, each once
  std::array<Sink, 2> sinks_ = {{{.fd = 1}, {.fd = 2}}};
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_TASK_H_
