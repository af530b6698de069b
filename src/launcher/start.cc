// SPDX-License-Identifier: Apache-2.0
// How a sandbox begins. Everything slow has been made ahead (launcher/slots.h, launcher/uppers.h).
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "control/order.h"
#include "launcher/blueprint.h"
#include "launcher/container_plan.h"
#include "launcher/record.h"
#include "launcher/slots.h"
#include "launcher/uppers.h"
#include "launcher/worker.h"
#include "launcher/worker_state.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/packet_listener.h"
#include "walls/plan.h"

namespace soma::launcher {

// Fills `sandbox` and tells the waiting monitor what to start.
Status Worker::SendOrder(ReadySlot& slot, const control::Request& request, Sandbox& sandbox) {
  const std::string socket_path = options_.paths.MonitorSocket(request.sandbox);
  SOMA_ASSIGN(const Fd listener, sys::ListenPackets(socket_path));
  if (geteuid() == 0 && chown(socket_path.c_str(), options_.server_uid, 0) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chown ", socket_path)));
  }
  SOMA_ASSIGN(sys::SocketPair wire, sys::MakeSocketPair(SOCK_STREAM));
  SOMA_ASSIGN(sys::SocketPair connection, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
  const bool container = request.level == control::Level::kContainer;
  SOMA_ASSIGN(const Blueprint blueprint,
              container ? ContainerBlueprint(slot, request, std::move(wire.second))
                        : MachineBlueprint(slot, request, std::move(wire.second)));
  SOMA_TRY_WHILE(walls::Validate(blueprint.plan), "the sandbox's plan");
  SOMA_TRY(slot.cgroup.SetLimits(blueprint.limits));
  control::Order order;
  order.sandbox = request.sandbox;
  order.level = request.level;
  order.monitor_uid = IsRootless() ? control::kKeepUid : slot.ids.monitor;
  order.launcher_uid = geteuid();
  order.server_uid = options_.server_uid;
  order.lease_seconds = request.lease_seconds;
  order.token = request.token;
  order.plan = walls::Encode(blueprint.plan);
  SOMA_ASSIGN(const Bytes packet, control::Encode(order));
  std::vector<int> descriptors = {listener.get(), connection.second.get(), wire.first.get(),
                                  (blueprint.disk ? blueprint.disk : null_).get()};
  descriptors.insert(descriptors.end(), blueprint.slots.begin(), blueprint.slots.end());
  SOMA_TRY_WHILE(sys::SendPacket(slot.link, packet, descriptors), "sending the order");
  sandbox.wire = std::move(wire.first);
  sandbox.connection = std::move(connection.first);
  return {};
}

// The size that was asked for now is the likeliest next one: some of it are kept ready.
Result<Fd> Worker::TakeUpper(const control::Limits& limits) {
  const DiskSize size{.bytes = limits.disk_bytes, .inodes = limits.inodes};
  uppers_.KeepAtLeast(size, options_.ready_wanted);
  return uppers_.Take(size);
}

Result<Blueprint> Worker::ContainerBlueprint(const ReadySlot& slot, const control::Request& request,
                                             Fd guest_wire) {
  if (IsRootless()) return RootlessBlueprint(request, std::move(guest_wire));
  Blueprint blueprint;
  SOMA_ASSIGN(blueprint.disk, TakeUpper(request.limits));
  SOMA_ASSIGN(Fd root, roots_->Make(request.template_id, blueprint.disk, slot.id_namespace,
                                    slot.ids.first, request.sandbox.text()));
  blueprint.plan = ContainerPlan(slot.ids, request.profile, request.limits, request.sandbox.text());
  blueprint.limits = request.limits;
  // The order of container_plan.h.
  blueprint.AddOwned(std::move(root));
  blueprint.AddBorrowed(guest_program_);
  blueprint.AddOwned(std::move(guest_wire));
  blueprint.AddBorrowed(null_);
  return blueprint;
}

Status Worker::Start(ClientId client, const control::Request& request) {
  const auto is_draining = [&](const Draining& draining) {
    return draining.sandbox == request.sandbox;
  };
  if (sandboxes_.contains(request.sandbox) || std::ranges::any_of(draining_, is_draining)) {
    return Fail(Errc::kAlreadyExists, "a sandbox of this name exists or is still being removed");
  }
  SOMA_ASSIGN(ReadySlot slot, slots_.Take());
  last_start_or_end_ = clock_.MonotonicNow();
  HaveIdleWork();
  const auto prepare = [&]() -> Result<std::unique_ptr<Sandbox>> {
    auto sandbox = std::make_unique<Sandbox>();
    SOMA_TRY(SaveRecord(options_.paths, {.sandbox = request.sandbox,
                                         .level = request.level,
                                         .slot = slot.slot,
                                         .monitor = slot.monitor_identity}));
    SOMA_TRY(SendOrder(slot, request, *sandbox));
    return sandbox;
  };
  auto prepared = prepare();
  if (!prepared) {
    slot.link.Reset();
    slot.cgroup.Kill();
    draining_.push_back({.cgroup = std::move(slot.cgroup),
                         .slot = slot.slot,
                         .monitor = std::move(slot.monitor),
                         .sandbox = request.sandbox,
                         .since = clock_.MonotonicNow()});
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
