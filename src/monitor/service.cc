// SPDX-License-Identifier: Apache-2.0
#include "monitor/service.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "control/messages.h"
#include "control/order.h"
#include "monitor/desk.h"
#include "monitor/identity.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/packet_listener.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::monitor {
namespace {

using control::DescriptorKind;
using control::Reply;

// The launcher, one server, and some that knock.
constexpr std::size_t kConnectionsMax = 8;
// The sequence under which the launcher waits for the order's outcome: its first on this link.
constexpr std::uint32_t kStartSequence = 1;

struct Connection {
  Fd socket;
  std::uint32_t uid = 0;
};

// Blocks until the order is there. No value: the launcher is gone.
Result<std::optional<sys::ReceivedPacket>> WaitForPacket(const Fd& link, Bytes& buffer) {
  for (;;) {
    pollfd wait{.fd = link.get(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, -1) < 0 && errno != EINTR) {
      return std::unexpected(Error::FromErrno(errno, "poll"));
    }
    auto received = sys::ReceivePacket(link, buffer, sys::kPacketDescriptorsMax);
    if (!received && received.error().errno_value() == EAGAIN) continue;
    if (!received) return std::unexpected(std::move(received).error());
    if (received->size == 0) return std::nullopt;
    return *std::move(received);
  }
}

class Service {
 public:
  Service(Fd link, const control::Order& order, std::vector<Fd> descriptors, Clock& clock)
      : clock_(clock),
        desk_(order, kFirstServer, clock.MonotonicNow()),
        server_uid_(order.server_uid),
        listener_(std::move(descriptors[control::kOrderListener])),
        wire_(std::move(descriptors[control::kOrderWire])),
        disk_(std::move(descriptors[control::kOrderDisk])) {
    connections_.emplace(kLauncherLink, Connection{.socket = std::move(link), .uid = 0});
    connections_.emplace(kFirstServer,
                         Connection{.socket = std::move(descriptors[control::kOrderConnection]),
                                    .uid = order.server_uid});
  }

  // Says to the launcher that pid 1 runs, or why it does not.
  Status AnswerOrder(Result<walls::RunningTask> task);
  void Loop();

 private:
  static constexpr ConnectionId kFirstServer = 1;

  bool RunsAfterStart();
  void PollOnce();
  void Accept();
  void Receive(ConnectionId id);
  void Answer(ConnectionId id, const control::Request& request, std::vector<Fd> descriptors);
  void Send(ConnectionId id, const Reply& reply, const std::vector<int>& descriptors);
  void Close(ConnectionId id);
  int TimeoutMs();
  std::vector<int> AddCaptures(Reply& reply, std::vector<int> descriptors) const;
  void Finish(const walls::TaskEnd& end);

  Clock& clock_;
  Desk desk_;
  std::uint32_t server_uid_;
  Fd listener_;
  Fd wire_;
  // Only held. Unmounting a disk writes it out and waits for the device: so the end of pid 1, which
  // a kill waits for, is not the disk's last user, but the end of this process is.
  Fd disk_;
  std::map<ConnectionId, Connection> connections_;
  ConnectionId next_connection_ = kFirstServer + 1;
  std::optional<walls::RunningTask> task_;
  walls::CaptureSockets captures_;
  bool over_ = false;
};

// Waits until the agent has been executed: the walls stand, but its program may not be one.
Result<walls::RunningTask> WaitForStart(walls::RunningTask task) {
  for (;;) {
    if (auto event = task.Advance()) {
      if (event->kind == walls::TaskEventKind::kStarted) return task;
      return Fail(Errc::kInternal, "the sandbox did not start: " + event->end.Describe());
    }
    std::array<pollfd, 2> polls = {pollfd{.fd = task.channel(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = task.pidfd(), .events = POLLIN, .revents = 0}};
    if (poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) {
      return std::unexpected(Error::FromErrno(errno, "poll"));
    }
  }
}

Status Service::AnswerOrder(Result<walls::RunningTask> task) {
  Reply reply;
  reply.verb = control::Verb::kStart;
  reply.sequence = kStartSequence;
  if (!task) {
    reply.ok = false;
    reply.code = task.error().code();
    reply.detail = task.error().message();
    Send(kLauncherLink, reply, {});
    return std::unexpected(std::move(task).error());
  }
  task_ = *std::move(task);
  captures_ = task_->TakeCapture();
  reply.status = desk_.StatusAt(clock_.MonotonicNow());
  const std::vector<int> descriptors = AddCaptures(reply, {});
  Send(kLauncherLink, reply, descriptors);
  return {};
}

std::vector<int> Service::AddCaptures(Reply& reply, std::vector<int> descriptors) const {
  const std::pair<DescriptorKind, const Fd*> all[] = {
      {DescriptorKind::kCaptureTcp4, &captures_.tcp4},
      {DescriptorKind::kCaptureTcp6, &captures_.tcp6},
      {DescriptorKind::kCaptureDnsUdp, &captures_.dns_udp4},
      {DescriptorKind::kCaptureDnsTcp, &captures_.dns_tcp4}};
  for (const auto& [kind, fd] : all) {
    if (!*fd) continue;
    reply.descriptors[descriptors.size()] = kind;
    descriptors.push_back(fd->get());
  }
  reply.descriptor_count = static_cast<std::uint8_t>(descriptors.size());
  return descriptors;
}

int Service::TimeoutMs() {
  if (desk_.is_ending()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(desk_.lease_end() - clock_.MonotonicNow());
  return static_cast<int>(
      std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

void Service::PollOnce() {
  std::vector<pollfd> polls = {{.fd = task_->channel(), .events = POLLIN, .revents = 0},
                               {.fd = task_->pidfd(), .events = POLLIN, .revents = 0},
                               {.fd = connections_.size() < kConnectionsMax ? listener_.get() : -1,
                                .events = POLLIN,
                                .revents = 0}};
  const std::size_t first = polls.size();
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) {
    ids.push_back(id);
    polls.push_back({.fd = connection.socket.get(), .events = POLLIN, .revents = 0});
  }
  if (poll(polls.data(), polls.size(), TimeoutMs()) < 0) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (polls[first + i].revents != 0) Receive(ids[i]);
  }
  if (polls[2].revents != 0) Accept();
}

void Service::Loop() {
  while (!over_) {
    if (desk_.ExpireAt(clock_.MonotonicNow())) task_->Kill();
    while (auto event = task_->Advance()) {
      if (event->kind != walls::TaskEventKind::kEnded) continue;
      Finish(event->end);
      return;
    }
    PollOnce();
  }
}

void Service::Accept() {
  auto socket = sys::AcceptPackets(listener_);
  if (!socket) return;
  const auto peer = sys::PeerOf(*socket);
  if (!peer) return;
  connections_.emplace(next_connection_++,
                       Connection{.socket = *std::move(socket), .uid = peer->uid});
}

void Service::Receive(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  std::array<std::uint8_t, control::kMessageBytes + 1> buffer{};
  // Only the launcher sends a descriptor: the connection of a server that attaches through it.
  const bool launcher = id == kLauncherLink || found->second.uid == 0;
  auto received = sys::ReceivePacket(found->second.socket, buffer, launcher ? 1 : 0);
  if (!received && received.error().errno_value() == EAGAIN) return;
  if (!received || received->size == 0) {
    Close(id);
    return;
  }
  const auto request = control::DecodeRequest(ByteView(buffer).first(received->size));
  if (!request) {
    Close(id);
    return;
  }
  Answer(id, *request, std::move(received->descriptors));
}

void Service::Answer(ConnectionId id, const control::Request& request,
                     std::vector<Fd> descriptors) {
  const Connection& asking = connections_.at(id);
  std::optional<ConnectionId> through_launcher;
  if (!descriptors.empty() && request.verb == control::Verb::kAttach) {
    through_launcher = next_connection_++;
  }
  const struct Answer answer = desk_.Handle({.connection = id, .uid = asking.uid}, request,
                                            clock_.MonotonicNow(), through_launcher);
  if (answer.kill) task_->Kill();
  Reply reply = answer.reply;
  std::vector<int> sent;
  if (answer.hand_out_wire) {
    reply.descriptors[0] = DescriptorKind::kWire;
    sent = AddCaptures(reply, {wire_.get()});
    if (through_launcher) {
      connections_.emplace(*through_launcher,
                           Connection{.socket = std::move(descriptors[0]), .uid = server_uid_});
    }
  }
  Send(id, reply, sent);
}

void Service::Send(ConnectionId id, const Reply& reply, const std::vector<int>& descriptors) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (!sys::SendPacket(found->second.socket, control::Encode(reply), descriptors)) Close(id);
}

void Service::Close(ConnectionId id) {
  connections_.erase(id);
  if (desk_.OnClosed(id) && task_) task_->Kill();
}

void Service::Finish(const walls::TaskEnd& end) {
  over_ = true;
  const bool exited = end.kind == walls::TaskEndKind::kExited;
  const bool signalled = end.kind == walls::TaskEndKind::kSignalled;
  desk_.OnEnded(static_cast<std::uint8_t>(exited ? end.code : 0),
                static_cast<std::uint8_t>(signalled ? end.code
                                          : exited  ? 0
                                                    : SIGKILL));
  Reply event;
  event.verb = control::Verb::kEvent;
  event.status = desk_.StatusAt(clock_.MonotonicNow());
  std::vector<ConnectionId> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const ConnectionId id : ids) Send(id, event, {});
}

Result<walls::RunningTask> Build(const control::Order& order, const std::vector<Fd>& descriptors) {
  SOMA_ASSIGN(const walls::WallPlan plan, walls::Decode(order.plan));
  if (order.monitor_uid != control::kKeepUid) {
    SOMA_TRY_WHILE(BecomeWithCapabilities(order.monitor_uid), "becoming the monitor's user");
  }
  walls::LaunchOptions options;
  for (std::size_t i = control::kOrderFirstSlot; i < descriptors.size(); ++i) {
    options.descriptors.push_back(descriptors[i].get());
  }
  auto task = walls::Launch(plan, options);
  // Whatever came of it: this process never needs a privilege again.
  SOMA_TRY_WHILE(DropEverything(), "dropping the monitor's privileges");
  if (!task) return std::unexpected(std::move(task).error());
  return WaitForStart(*std::move(task));
}

}  // namespace

Status Serve(Fd link, Clock& clock) {
  Bytes buffer(control::kOrderBytesMax);
  SOMA_ASSIGN(auto packet, WaitForPacket(link, buffer));
  if (!packet) return {};
  SOMA_ASSIGN(const control::Order order,
              control::DecodeOrder(ByteView(buffer).first(packet->size)));
  buffer = Bytes();
  if (packet->descriptors.size() < control::kOrderFirstSlot) {
    return Fail(Errc::kInvalidArgument, "an order came without its descriptors");
  }
  auto task = Build(order, packet->descriptors);
  // The slots were for the plan; what this monitor keeps is its listener, connection, wire and
  // disk.
  packet->descriptors.resize(control::kOrderFirstSlot);
  Service service(std::move(link), order, std::move(packet->descriptors), clock);
  SOMA_TRY(service.AnswerOrder(std::move(task)));
  service.Loop();
  return {};
}

}  // namespace soma::monitor
