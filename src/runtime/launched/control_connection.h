// SPDX-License-Identifier: Apache-2.0
// ControlConnection: one SEQPACKET connection to the launcher or to a monitor, over which several
// coroutines ask at the same time (control/client.h). When the peer closes it or breaks the
// protocol, whoever waits gets kUnavailable and the connection stays dead.
#ifndef SOMA_RUNTIME_LAUNCHED_CONTROL_CONNECTION_H_
#define SOMA_RUNTIME_LAUNCHED_CONTROL_CONNECTION_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/result.h"
#include "control/messages.h"
#include "sys/fd.h"

namespace soma::runtime {

class ControlConnection {
 public:
  struct Answer {
    control::Reply reply;
    std::vector<Fd> descriptors;

    // The first descriptor of that kind; empty when there is none.
    Fd Take(control::DescriptorKind kind);
  };

  // A connected SOCK_SEQPACKET socket.
  ControlConnection(aio::Loop& loop, Fd socket);
  ~ControlConnection();
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  // The reply, as an Error when it is not ok.
  aio::Task<Answer> Ask(control::Request request, std::chrono::nanoseconds timeout);
  bool alive() const;

  // The newest state that the peer told by itself (kEvent); a monitor does that.
  std::optional<control::SandboxStatus> last_event() const;
  // Until the sandbox is over or the peer is gone; kDeadlineExceeded before that.
  aio::Task<void> WaitOver(std::chrono::nanoseconds timeout);

 private:
  struct State;
  static aio::Job Pump(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Connects to a launcher's socket.
Result<Fd> ConnectControl(const std::string& path);

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_LAUNCHED_CONTROL_CONNECTION_H_
