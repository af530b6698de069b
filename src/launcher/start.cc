// SPDX-License-Identifier: Apache-2.0
// How a sandbox begins. Everything slow has been made ahead (launcher/slots.h, launcher/uppers.h).
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "control/order.h"
#include "launcher/container_plan.h"
#include "launcher/record.h"
#include "launcher/slots.h"
#include "launcher/worker.h"
#include "launcher/worker_state.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/packet_listener.h"
#include "walls/plan.h"

namespace soma::launcher {

// Fills `sandbox` and tells the waiting monitor what to start.
Status Worker::SendOrder(ReadySlot& slot, const control::Request& request, const Fd& root,
                         Sandbox& sandbox) {
  const std::string socket_path = options_.paths.MonitorSocket(request.sandbox);
  SOMA_ASSIGN(const Fd listener, sys::ListenPackets(socket_path));
  if (geteuid() == 0 && chown(socket_path.c_str(), options_.server_uid, 0) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chown ", socket_path)));
  }
  SOMA_ASSIGN(sys::SocketPair wire, sys::MakeSocketPair(SOCK_STREAM));
  SOMA_ASSIGN(sys::SocketPair connection, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
  const walls::WallPlan plan =
      ContainerPlan(slot.ids, request.profile, request.limits, request.sandbox.text());
  SOMA_TRY_WHILE(walls::Validate(plan), "the container's plan");
  control::Order order;
  order.sandbox = request.sandbox;
  order.level = request.level;
  order.monitor_uid = slot.ids.monitor;
  order.launcher_uid = geteuid();
  order.server_uid = options_.server_uid;
  order.lease_seconds = request.lease_seconds;
  order.token = request.token;
  order.plan = walls::Encode(plan);
  SOMA_ASSIGN(const Bytes packet, control::Encode(order));
  const std::array<int, control::kOrderFirstSlot + kContainerSlots> descriptors = {
      listener.get(),       connection.second.get(), wire.first.get(), root.get(),
      guest_program_.get(), wire.second.get(),       null_.get()};
  SOMA_TRY_WHILE(sys::SendPacket(slot.link, packet, descriptors), "sending the order");
  sandbox.wire = std::move(wire.first);
  sandbox.connection = std::move(connection.first);
  return {};
}

Status Worker::Start(ClientId client, const control::Request& request) {
  if (request.level != control::Level::kContainer) {
    return Fail(Errc::kUnimplemented, "this launcher starts containers only");
  }
  const auto is_draining = [&](const Draining& draining) {
    return draining.sandbox == request.sandbox;
  };
  if (sandboxes_.contains(request.sandbox) || std::ranges::any_of(draining_, is_draining)) {
    return Fail(Errc::kAlreadyExists, "a sandbox of this name exists or is still being removed");
  }
  SOMA_ASSIGN(ReadySlot slot, slots_.Take());
  idle_done_ = false;
  const auto prepare = [&]() -> Result<std::unique_ptr<Sandbox>> {
    auto sandbox = std::make_unique<Sandbox>();
    SOMA_ASSIGN(const Fd upper, uppers_.Take({.bytes = request.limits.disk_bytes,
                                              .inodes = request.limits.inodes}));
    SOMA_ASSIGN(const Fd root,
                roots_.Make(request.template_id, upper, slot.id_namespace, slot.ids.first));
    SOMA_TRY(slot.cgroup.SetLimits(request.limits));
    SOMA_TRY(SaveRecord(options_.paths, {.sandbox = request.sandbox,
                                         .level = request.level,
                                         .slot = slot.slot,
                                         .monitor = slot.monitor_identity}));
    SOMA_TRY(SendOrder(slot, request, root, *sandbox));
    return sandbox;
  };
  auto prepared = prepare();
  if (!prepared) {
    slot.link.Reset();
    slot.cgroup.Kill();
    draining_.push_back({.cgroup = std::move(slot.cgroup),
                         .slot = slot.slot,
                         .monitor = std::move(slot.monitor),
                         .sandbox = request.sandbox});
    return std::unexpected(std::move(prepared).error());
  }
  Sandbox& sandbox = **prepared;
  sandbox.status.sandbox = request.sandbox;
  sandbox.status.level = request.level;
  sandbox.status.state = control::SandboxState::kStarting;
  sandbox.slot = slot.slot;
  sandbox.cgroup = std::move(slot.cgroup);
  sandbox.monitor = std::move(slot.monitor);
  sandbox.link = std::move(slot.link);
  const std::uint32_t sequence = sandbox.next_sequence++;
  sandbox.pending.emplace(sequence, Pending{.client = client,
                                            .verb = control::Verb::kStart,
                                            .sequence = request.sequence,
                                            .connection = Fd()});
  sandboxes_.emplace(request.sandbox, *std::move(prepared));
  return {};
}

}  // namespace soma::launcher
