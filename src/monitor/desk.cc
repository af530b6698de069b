// SPDX-License-Identifier: Apache-2.0
#include "monitor/desk.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "control/messages.h"
#include "control/order.h"

namespace soma::monitor {
namespace {

Answer Refuse(const control::Request& request, Errc code, const char* why) {
  return {.reply = control::Refusal(request, Error(code, why))};
}

}  // namespace

Desk::Desk(const control::Order& order, ConnectionId attached, MonotonicTime now)
    : token_(order.token),
      launcher_uid_(order.launcher_uid),
      server_uid_(order.server_uid),
      foreground_(order.token == control::Token{}),
      attached_(attached),
      lease_end_(now + std::chrono::seconds(order.lease_seconds)) {
  status_.sandbox = order.sandbox;
  status_.level = order.level;
  status_.state = control::SandboxState::kRunning;
}

bool Desk::MayManage(const Asker& asker) const {
  return asker.connection == kLauncherLink || asker.uid == launcher_uid_ ||
         asker.connection == attached_;
}

Answer Desk::Attach(const Asker& asker, const control::Request& request, MonotonicTime now,
                    std::optional<ConnectionId> through_launcher) {
  const bool from_launcher = asker.connection == kLauncherLink || asker.uid == launcher_uid_;
  if (!from_launcher && asker.uid != server_uid_) {
    return Refuse(request, Errc::kPermissionDenied, "only the server's user may attach");
  }
  if (foreground_ || !control::SameToken(request.token, token_)) {
    return Refuse(request, Errc::kUnauthenticated, "the token is not this sandbox's");
  }
  const ConnectionId connection = through_launcher.value_or(asker.connection);
  if (connection == kLauncherLink) {
    return Refuse(request, Errc::kInvalidArgument, "the launcher itself can't be attached");
  }
  // Two readers of one wire would each get half of it.
  if (attached_ && attached_ != connection) {
    return Refuse(request, Errc::kFailedPrecondition, "another server is attached");
  }
  attached_ = connection;
  Answer answer{.reply = control::Accepted(request), .hand_out_wire = true};
  answer.reply.status = StatusAt(now);
  return answer;
}

Answer Desk::Handle(const Asker& asker, const control::Request& request, MonotonicTime now,
                    std::optional<ConnectionId> through_launcher) {
  if (request.sandbox != status_.sandbox) {
    return Refuse(request, Errc::kNotFound, "this is another sandbox's monitor");
  }
  if (request.verb == control::Verb::kAttach) {
    return Attach(asker, request, now, through_launcher);
  }
  if (!MayManage(asker)) {
    return Refuse(request, Errc::kPermissionDenied, "attach first");
  }
  Answer answer{.reply = control::Accepted(request)};
  switch (request.verb) {
    case control::Verb::kRenew:
      // A lease that is over has been acted on; it can't be brought back.
      if (ending_) return Refuse(request, Errc::kFailedPrecondition, "the sandbox is ending");
      lease_end_ = now + std::chrono::seconds(request.lease_seconds);
      break;
    case control::Verb::kKill:
      if (!ending_) ending_ = control::SandboxState::kKilled;
      answer.kill = true;
      break;
    case control::Verb::kStatus:
      break;
    default:
      return Refuse(request, Errc::kUnimplemented, "a monitor does not do that");
  }
  answer.reply.status = StatusAt(now);
  return answer;
}

bool Desk::OnClosed(ConnectionId connection) {
  if (attached_ != connection) return false;
  attached_.reset();
  if (!foreground_ || ending_) return false;
  ending_ = control::SandboxState::kKilled;
  return true;
}

bool Desk::ExpireAt(MonotonicTime now) {
  if (ending_ || now < lease_end_) return false;
  ending_ = control::SandboxState::kExpired;
  return true;
}

void Desk::OnEnded(std::uint8_t exit_code, std::uint8_t exit_signal) {
  status_.state = ending_.value_or(control::SandboxState::kExited);
  status_.exit_code = exit_code;
  status_.exit_signal = exit_signal;
}

control::SandboxStatus Desk::StatusAt(MonotonicTime now) const {
  control::SandboxStatus status = status_;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(lease_end_ - now).count();
  status.lease_remaining_ms = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(left, 0, std::numeric_limits<std::uint32_t>::max()));
  return status;
}

}  // namespace soma::monitor
