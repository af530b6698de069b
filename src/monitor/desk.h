// SPDX-License-Identifier: Apache-2.0
// Desk: what a monitor answers and decides, without any I/O: who may ask for what, who is attached,
// when the lease ends, how the sandbox ended. The service (monitor/service.h) moves the packets.
//
// Requests come from the server, which is assumed broken into. What it can reach here: the wire of
// this one sandbox, its lease and its end.
#ifndef SOMA_MONITOR_DESK_H_
#define SOMA_MONITOR_DESK_H_

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "control/messages.h"
#include "control/order.h"

namespace soma::monitor {

// Chosen by the service, one a connection.
using ConnectionId = std::uint32_t;
// The socket that the launcher's worker had when it started this monitor.
inline constexpr ConnectionId kLauncherLink = 0;

struct Asker {
  ConnectionId connection = kLauncherLink;
  std::uint32_t uid = 0;  // SO_PEERCRED; not looked at for kLauncherLink
};

struct Answer {
  control::Reply reply;
  bool hand_out_wire = false;  // the service adds the descriptors; the asker is attached now
  bool kill = false;           // the service kills the sandbox
};

class Desk {
 public:
  // The lease of `order` runs from `now` on. `attached` holds the wire already.
  Desk(const control::Order& order, ConnectionId attached, MonotonicTime now);

  // `through_launcher` is the connection that comes beside an Attach on the launcher's link: not
  // the launcher itself gets attached, but whoever holds that connection's other end.
  Answer Handle(const Asker& asker, const control::Request& request, MonotonicTime now,
                std::optional<ConnectionId> through_launcher);
  // True once, when the sandbox belongs to that connection alone (control::Request::token): the
  // caller kills it.
  bool OnClosed(ConnectionId connection);

  MonotonicTime lease_end() const { return lease_end_; }
  // We are ending the sandbox: there is only its end to wait for.
  bool is_ending() const { return ending_.has_value(); }
  // True once, when the lease has ended: the caller kills the sandbox.
  bool ExpireAt(MonotonicTime now);

  // The sandbox has ended by itself, unless the desk had it killed or the lease was over.
  // Exactly one of `exit_code` and `exit_signal` is meaningful; signal 0 means exited.
  void OnEnded(std::uint8_t exit_code, std::uint8_t exit_signal);
  control::SandboxStatus StatusAt(MonotonicTime now) const;

 private:
  Answer Attach(const Asker& asker, const control::Request& request, MonotonicTime now,
                std::optional<ConnectionId> through_launcher);
  // May it kill, renew and ask?
  bool MayManage(const Asker& asker) const;

  control::SandboxStatus status_;
  control::Token token_;
  std::uint32_t launcher_uid_;
  std::uint32_t server_uid_;
  bool foreground_;
  std::optional<ConnectionId> attached_;
  MonotonicTime lease_end_;
  // Why the sandbox is being ended, if we do it.
  std::optional<control::SandboxState> ending_;
};

}  // namespace soma::monitor

#endif  // SOMA_MONITOR_DESK_H_
