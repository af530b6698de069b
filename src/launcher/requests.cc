// SPDX-License-Identifier: Apache-2.0
// What the server asks of the worker. Requests have been decoded: names and numbers are in bounds.
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "control/messages.h"
#include "launcher/worker.h"
#include "launcher/worker_state.h"
#include "sys/fd.h"
#include "sys/message_socket.h"

#include <sys/socket.h>
#include <unistd.h>

namespace soma::launcher {

// More than a monitor can have under way: its answers and one event.
constexpr int kLastWordsMax = 2 * static_cast<int>(kPendingMax);

using control::Reply;
using control::Request;
using control::SandboxState;
using control::Verb;

void Worker::Handle(ClientId client, const Request& request) {
  bool later = false;
  const Reply reply = Answer(client, request, later);
  if (!later) Send(client, reply);
}

// `later`: the answer comes from elsewhere, now or when a monitor has spoken.
Reply Worker::Answer(ClientId client, const Request& request, bool& later) {
  switch (request.verb) {
    case Verb::kHello:
      return Hello(request);
    case Verb::kAllocate:
      return Allocate(request);
    case Verb::kList:
      return List(request);
    case Verb::kReap:
      return Reap(request);
    case Verb::kSockets:
      later = true;
      AnswerSockets(client, request);
      return {};
    case Verb::kStart: {
      const Status started = Start(client, request);
      later = started.has_value();
      return later ? Reply{} : control::Refusal(request, started.error());
    }
    case Verb::kSnapshot:
    case Verb::kEvent:
      return control::Refusal(request, Error(Errc::kUnimplemented, "not in this version"));
    default:
      break;
  }
  const auto found = sandboxes_.find(request.sandbox);
  if (found == sandboxes_.end()) {
    return control::Refusal(request, Error(Errc::kNotFound, "there is no such sandbox"));
  }
  Sandbox& sandbox = *found->second;
  if (!sandbox.link) {
    if (request.verb != Verb::kStatus && request.verb != Verb::kKill) {
      return control::Refusal(request, Error(Errc::kFailedPrecondition, "the sandbox has ended"));
    }
    Reply reply = control::Accepted(request);
    reply.status = sandbox.status;
    return reply;
  }
  if (request.verb == Verb::kFreeze || request.verb == Verb::kThaw) return Freeze(request, sandbox);
  const Status forwarded = Forward(client, request, sandbox);
  later = forwarded.has_value();
  if (later) return {};
  if (forwarded.error().code() == Errc::kUnavailable && HearTheLastOf(request.sandbox)) {
    return Answer(client, request, later);
  }
  return control::Refusal(request, forwarded.error());
}

// A monitor that can't be written to has ended; what it said before is still to be read. True when
// the sandbox is known to be over then, or forgotten.
bool Worker::HearTheLastOf(const control::SandboxId& id) {
  for (int i = 0; i < kLastWordsMax; ++i) {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end() || !found->second->link) return true;
    ReceiveFromMonitor(*found->second);
  }
  return false;
}

Reply Worker::Hello(const Request& request) const {
  Reply reply = control::Accepted(request);
  reply.launcher.regime = options_.regime;
  reply.launcher.levels = 1U << static_cast<unsigned>(control::Level::kContainer);
  if (!IsRootless() && CanEmulate()) {
    reply.launcher.levels |= 1U << static_cast<unsigned>(control::Level::kEmulated);
  }
  reply.launcher.sandboxes = static_cast<std::uint32_t>(sandboxes_.size());
  reply.launcher.sandboxes_max = static_cast<std::uint32_t>(options_.sandboxes_max);
  reply.launcher.epoch = static_cast<std::uint32_t>(getpid());
  return reply;
}

Reply Worker::List(const Request& request) const {
  const auto next = sandboxes_.upper_bound(request.sandbox);
  if (next == sandboxes_.end()) {
    return control::Refusal(request, Error(Errc::kNotFound, "there are no more"));
  }
  Reply reply = control::Accepted(request);
  reply.status = next->second->status;
  return reply;
}

Reply Worker::Allocate(const Request& request) {
  if (!IsRootless()) {
    uppers_.Keep({.bytes = request.limits.disk_bytes, .inodes = request.limits.inodes},
                 request.count);
  }
  slots_.Want(request.count);
  HaveIdleWork();
  return control::Accepted(request);
}

Reply Worker::Freeze(const Request& request, Sandbox& sandbox) {
  // The monitor still sits in the sandbox's cgroup just after a start; it must not be frozen with
  // it.
  if (std::erase(to_move_home_, request.sandbox) > 0) {
    (void)cgroups_.MoveHome(sandbox.monitor.pid());
  }
  const bool freeze = request.verb == Verb::kFreeze;
  const Status done = freeze ? sandbox.cgroup->Freeze() : sandbox.cgroup->Thaw();
  if (!done) return control::Refusal(request, done.error());
  sandbox.frozen = freeze;
  sandbox.status.state = freeze ? SandboxState::kFrozen : SandboxState::kRunning;
  Reply reply = control::Accepted(request);
  reply.status = sandbox.status;
  return reply;
}

Reply Worker::Reap(const Request& request) {
  const auto found = sandboxes_.find(request.sandbox);
  if (found == sandboxes_.end()) {
    return control::Refusal(request, Error(Errc::kNotFound, "there is no such sandbox"));
  }
  if (found->second->link) {
    return control::Refusal(request, Error(Errc::kFailedPrecondition, "the sandbox still runs"));
  }
  Reply reply = control::Accepted(request);
  reply.status = found->second->status;
  sandboxes_.erase(found);
  return reply;
}

void Worker::AnswerSockets(ClientId client, const Request& request) {
  Reply reply = control::Accepted(request);
  std::vector<int> descriptors;
  for (const Fd& socket : options_.http) {
    if (descriptors.size() == control::kDescriptorsMax) break;
    reply.descriptors[descriptors.size()] = control::DescriptorKind::kListenHttp;
    descriptors.push_back(socket.get());
  }
  reply.descriptor_count = static_cast<std::uint8_t>(descriptors.size());
  Send(client, reply, descriptors);
}

Status Worker::Forward(ClientId client, const Request& request, Sandbox& sandbox) {
  if (sandbox.pending.size() >= kPendingMax) {
    return Fail(Errc::kResourceExhausted, "too many requests to this sandbox are under way");
  }
  if (request.verb == Verb::kKill) last_start_or_end_ = clock_.MonotonicNow();
  Request to_monitor = request;
  to_monitor.sequence = sandbox.next_sequence++;
  Pending pending{
      .client = client, .verb = request.verb, .sequence = request.sequence, .connection = Fd()};
  std::vector<int> descriptors;
  Fd monitors_end;
  if (request.verb == Verb::kAttach) {
    SOMA_ASSIGN(sys::SocketPair connection, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
    pending.connection = std::move(connection.first);
    monitors_end = std::move(connection.second);
    descriptors.push_back(monitors_end.get());
  }
  SOMA_ASSIGN(const control::Packet packet, control::Encode(to_monitor));
  SOMA_TRY_WHILE(sys::SendPacket(sandbox.link, packet, descriptors), "asking the monitor");
  sandbox.pending.emplace(to_monitor.sequence, std::move(pending));
  return {};
}

}  // namespace soma::launcher
