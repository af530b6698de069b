// SPDX-License-Identifier: Apache-2.0
// What monitors say to the worker, and how a sandbox ends.
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "control/messages.h"
#include "launcher/log.h"
#include "launcher/record.h"
#include "launcher/worker.h"
#include "launcher/worker_state.h"
#include "sys/counter_file.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/message_socket.h"

namespace soma::launcher {

using control::Reply;
using control::SandboxState;
using control::SandboxStatus;
using control::Verb;

void Worker::ReceiveFromMonitor(Sandbox& sandbox) {
  std::array<std::uint8_t, control::kMessageBytes + 1> buffer{};
  auto received = sys::ReceivePacket(sandbox.link, buffer, control::kDescriptorsMax);
  if (!received && received.error().errno_value() == EAGAIN) return;
  if (!received || received->size == 0) {
    OnMonitorGone(sandbox);
    return;
  }
  auto reply = control::DecodeReply(ByteView(buffer).first(received->size));
  if (!reply || reply->descriptor_count != received->descriptors.size()) {
    Log("a monitor says what a monitor can't say");
    OnMonitorGone(sandbox);
    return;
  }
  OnMonitorReply(sandbox, *std::move(reply), std::move(received->descriptors));
}

void Worker::OnMonitorReply(Sandbox& sandbox, Reply reply, std::vector<Fd> descriptors) {
  if (reply.verb == Verb::kEvent) {
    if (control::IsOver(reply.status.state)) OnOver(sandbox, reply.status);
    return;
  }
  const auto found = sandbox.pending.find(reply.sequence);
  if (found == sandbox.pending.end()) return;
  Pending pending = std::move(found->second);
  sandbox.pending.erase(found);
  if (pending.verb == Verb::kStart || (pending.verb == Verb::kAttach && reply.ok)) {
    AnswerStart(sandbox, pending, std::move(reply), descriptors);
    return;
  }
  if (pending.verb == Verb::kKill && reply.ok) {
    sandbox.waiting_for_end.push_back(std::move(pending));
    return;
  }
  reply.verb = pending.verb;
  reply.sequence = pending.sequence;
  if (reply.ok) sandbox.status.lease_remaining_ms = reply.status.lease_remaining_ms;
  if (sandbox.frozen) reply.status.state = SandboxState::kFrozen;
  if (reply.ok && pending.verb == Verb::kStatus) reply.usage = sandbox.cgroup->Usage();
  Send(pending.client, reply);
}

// The reply of kStart and kAttach: the wire, the connection to the monitor, then what the monitor
// sent. For kStart the worker itself holds the wire, for kAttach the monitor's reply begins with
// it.
void Worker::AnswerStart(Sandbox& sandbox, const Pending& pending, Reply reply,
                         const std::vector<Fd>& descriptors) {
  const Reply from_monitor = reply;
  reply.verb = pending.verb;
  reply.sequence = pending.sequence;
  reply.descriptor_count = 0;
  std::vector<int> raw;
  const auto add = [&](control::DescriptorKind kind, const Fd& fd) {
    reply.descriptors[raw.size()] = kind;
    raw.push_back(fd.get());
    reply.descriptor_count = static_cast<std::uint8_t>(raw.size());
  };
  if (reply.ok) {
    const bool start = pending.verb == Verb::kStart;
    std::size_t next = 0;
    if (start) {
      add(control::DescriptorKind::kWire, sandbox.wire);
    } else if (!descriptors.empty()) {
      add(from_monitor.descriptors[0], descriptors[next++]);
    }
    add(control::DescriptorKind::kMonitor, start ? sandbox.connection : pending.connection);
    for (; next < descriptors.size() && raw.size() < control::kDescriptorsMax; ++next) {
      add(from_monitor.descriptors[next], descriptors[next]);
    }
    if (start) sandbox.status = reply.status;
    // Only the monitor's own claim about its state would be older than what we did meanwhile.
    if (sandbox.frozen) reply.status.state = SandboxState::kFrozen;
  }
  Send(pending.client, reply, raw);
  sandbox.wire.Reset();
  sandbox.connection.Reset();
  if (pending.verb == Verb::kStart) {
    to_move_home_.push_back(sandbox.status.sandbox);
    last_start_or_end_ = clock_.MonotonicNow();
    HaveIdleWork();
  }
}

namespace {
std::uint32_t AtMost32Bits(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
}
}  // namespace

void Worker::OnOver(Sandbox& sandbox, const SandboxStatus& status) {
  const control::SandboxId id = sandbox.status.sandbox;
  const bool started = sandbox.status.state != SandboxState::kStarting;
  sandbox.status.state = status.state;
  sandbox.status.exit_code = status.exit_code;
  sandbox.status.exit_signal = status.exit_signal;
  sandbox.status.lease_remaining_ms = 0;
  const sys::CgroupHits hits = sandbox.cgroup->Hits();
  sandbox.status.memory_kills = AtMost32Bits(hits.out_of_memory_kills);
  sandbox.status.refused_forks = AtMost32Bits(hits.refused_forks);
  sandbox.link.Reset();
  sandbox.wire.Reset();
  sandbox.connection.Reset();
  last_start_or_end_ = clock_.MonotonicNow();
  draining_.push_back({.cgroup = *std::exchange(sandbox.cgroup, std::nullopt),
                       .slot = sandbox.slot,
                       .monitor = std::move(sandbox.monitor),
                       .sandbox = id,
                       .since = last_start_or_end_});
  for (const Pending& waiting : sandbox.waiting_for_end) {
    Reply reply;
    reply.verb = waiting.verb;
    reply.sequence = waiting.sequence;
    reply.status = sandbox.status;
    Send(waiting.client, reply);
  }
  for (const auto& [sequence, pending] : sandbox.pending) {
    Reply reply;
    reply.verb = pending.verb;
    reply.sequence = pending.sequence;
    reply.ok = false;
    reply.code = Errc::kUnavailable;
    reply.detail = "the sandbox has ended";
    Send(pending.client, reply);
  }
  sandbox.waiting_for_end.clear();
  sandbox.pending.clear();
  HaveIdleWork();
  // Never started: nobody will ask for it.
  if (!started) sandboxes_.erase(id);
  if (sandboxes_.size() > kEndedMax) {
    for (auto next = sandboxes_.begin(); next != sandboxes_.end(); ++next) {
      if (next->second->link) continue;
      sandboxes_.erase(next);
      break;
    }
  }
}

void Worker::OnMonitorGone(Sandbox& sandbox) {
  // What it was the parent of is dying already; nothing is to be waited for.
  sandbox.cgroup->Kill();
  SandboxStatus status = sandbox.status;
  status.state = SandboxState::kLost;
  OnOver(sandbox, status);
}

// The monitor first: it ends by itself, and may still sit in the cgroup and have its sandbox's end
// to tell to the server. What else is in there then is not to live.
bool Worker::IsDrained(Draining& draining) {
  if (!draining.monitor_gone) {
    pollfd ended{.fd = draining.monitor.pidfd().get(), .events = POLLIN, .revents = 0};
    draining.monitor_gone = ended.fd < 0 || poll(&ended, 1, 0) != 0;
    if (!draining.monitor_gone) {
      if (clock_.MonotonicNow() > draining.since + kMonitorPatience) {
        draining.monitor.Signal(SIGKILL);
      }
      return false;
    }
    // An adopted monitor isn't our child: the launcher's parent reaps it.
    (void)draining.monitor.TryWait();
  }
  if (draining.cgroup.Remove()) return true;
  draining.cgroup.Kill();
  return false;
}

// Goes over what still empties. Cheap: a few rmdir each.
void Worker::DrainOnce() {
  for (auto next = draining_.begin(); next != draining_.end();) {
    if (!IsDrained(*next)) {
      ++next;
      continue;
    }
    if (next->sandbox) {
      unlink(options_.paths.MonitorSocket(*next->sandbox).c_str());
      if (IsRootless()) (void)sys::RemoveTreeAt(options_.paths.Tree(*next->sandbox));
      RemoveRecord(options_.paths, *next->sandbox);
    }
    slots_.Release(next->slot);
    next = draining_.erase(next);
    HaveIdleWork();
  }
}

}  // namespace soma::launcher
