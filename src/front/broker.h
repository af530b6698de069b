// SPDX-License-Identifier: Apache-2.0
// Broker: the program that answers for a sandbox's network, seen from `soma run`.
//
// It is `soma-tools egress-broker`, a process of its own that loads while the walls are built. It
// gets the policy in a memfd and, when the walls stand, the listening sockets of the sandbox's
// network namespace in one packet; one byte 'R' says that it serves them. It ends when our end of
// the control socket is closed, however we end. Without the 'R' nothing starts.
#ifndef SOMA_FRONT_BROKER_H_
#define SOMA_FRONT_BROKER_H_

#include <string>

#include "base/result.h"
#include "policy/handover.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "walls/launch.h"

namespace soma::front {

class Broker {
 public:
  Broker(Broker&&) noexcept = default;
  Broker& operator=(Broker&&) noexcept = default;
  // Closes the control socket and waits a moment for the broker's last records; then kills it.
  ~Broker();

  static Result<Broker> Start(const policy::Handover& handover, const std::string& run_id);

  // Hands over the sandbox's sockets and waits for the answer, at most ten seconds.
  Status Serve(walls::CaptureSockets sockets);

 private:
  Broker(Fd control, sys::Process process)
      : control_(std::move(control)), process_(std::move(process)) {}

  Fd control_;
  sys::Process process_;
};

}  // namespace soma::front

#endif  // SOMA_FRONT_BROKER_H_
