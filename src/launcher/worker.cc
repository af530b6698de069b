// SPDX-License-Identifier: Apache-2.0
#include "launcher/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/cgroup_tree.h"
#include "launcher/log.h"
#include "launcher/roots.h"
#include "launcher/slots.h"
#include "launcher/worker_state.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/packet_listener.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

constexpr std::chrono::milliseconds kDrainPause{2};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kGatePause{100};
constexpr auto kStopPatience = std::chrono::seconds(10);
// Preparing takes locks that every start and end on the machine needs (moving a process into a
// cgroup stops all forks, execs and exits until an RCU grace period is over), so it waits for a
// quiet moment: so long after the last start or end, but not longer than that altogether.
constexpr auto kQuiet = std::chrono::milliseconds(30);
constexpr auto kDeferredMax = std::chrono::milliseconds(500);

// Two launchers on one machine differ by their state directories; their cgroups must differ too.
// FNV-1a, for a name, not for security.
std::string ShortNameOf(const std::string& path) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::array<std::uint8_t, 8> bytes{};
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(hash);
    hash >>= 8;
  }
  return Hex(bytes);
}

}  // namespace

Worker::Worker(WorkerOptions options, Clock& clock, CgroupTree cgroups, std::optional<Roots> roots)
    : options_(std::move(options)),
      clock_(clock),
      cgroups_(std::move(cgroups)),
      roots_(std::move(roots)),
      uppers_(options_.paths),
      slots_({.monitor_program = options_.programs + "/soma-monitor",
              .ready_wanted = options_.ready_wanted,
              .slots_max = options_.sandboxes_max,
              .own_ids = !IsRootless()},
             cgroups_) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::Create(WorkerOptions options, Clock& clock) {
  const bool rootless = options.regime == control::Regime::kRootless;
  CgroupTree cgroups = CgroupTree::None();
  std::optional<Roots> roots;
  if (!rootless) {
    SOMA_ASSIGN(cgroups, CgroupTree::Create(StrCat("soma-", ShortNameOf(options.paths.state))));
    SOMA_ASSIGN(roots, Roots::Create(options.paths));
  }
  // An earlier worker may have died with it; the parent keeps the open file.
  if (options.gate) SOMA_TRY(sys::Unlock(options.gate));
  std::unique_ptr<Worker> worker(
      new Worker(std::move(options), clock, std::move(cgroups), std::move(roots)));
  SOMA_ASSIGN(worker->guest_program_,
              sys::OpenFile(worker->options_.programs + "/soma-guest", O_PATH));
  SOMA_ASSIGN(worker->null_, sys::OpenFile("/dev/null", O_RDWR));
  SOMA_TRY_WHILE(worker->Sweep(), "sweeping");
  const control::Limits usual;
  if (!rootless) {
    worker->uppers_.Keep({.bytes = usual.disk_bytes, .inodes = usual.inodes},
                         worker->options_.ready_wanted);
  }
  return worker;
}

Status Worker::Run() {
  while (!stopping_) PollOnce(TimeoutMs());
  Stop();
  return {};
}

std::optional<std::chrono::milliseconds> Worker::UntilIdleExit() {
  const bool somebody =
      !clients_.empty() || !draining_.empty() ||
      std::ranges::any_of(sandboxes_, [](const auto& item) { return bool(item.second->link); });
  if (somebody || options_.idle_exit.count() == 0) {
    alone_since_.reset();
    return std::nullopt;
  }
  if (!alone_since_) alone_since_ = clock_.MonotonicNow();
  return std::chrono::ceil<std::chrono::milliseconds>(*alone_since_ + options_.idle_exit -
                                                      clock_.MonotonicNow());
}

bool Worker::MayLeave() {
  if (!options_.gate) return true;
  const auto locked = sys::TryLock(options_.gate, sys::LockKind::kExclusive);
  if (!locked || !*locked) return false;
  // Who connected before the lock was ours is served.
  pollfd waiting{.fd = options_.listener.get(), .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, 0) == 0) return true;
  (void)sys::Unlock(options_.gate);
  return false;
}

void Worker::HaveIdleWork() {
  if (idle_done_) idle_work_since_ = clock_.MonotonicNow();
  idle_done_ = false;
}

bool Worker::IsStarting() const {
  return std::ranges::any_of(sandboxes_, [](const auto& item) {
    return item.second->link && item.second->status.state == control::SandboxState::kStarting;
  });
}

// How long what is to be prepared still waits: not at all when the next start would find nothing
// ready.
std::chrono::milliseconds Worker::UntilIdleWork() const {
  constexpr std::chrono::milliseconds kNow{0};
  if (!slots_.has_ready() && !IsStarting()) return kNow;
  const MonotonicTime due = std::min(last_start_or_end_ + kQuiet, idle_work_since_ + kDeferredMax);
  return std::max(kNow, std::chrono::ceil<std::chrono::milliseconds>(due - clock_.MonotonicNow()));
}

// What is left of a sandbox ends with its monitor, which wakes us; a cgroup says nothing when it
// has emptied.
std::chrono::milliseconds Worker::UntilDrain() const {
  const bool emptying = std::ranges::any_of(draining_, &Draining::monitor_gone);
  return emptying ? kDrainPause : kMonitorPatience;
}

// -1: until something comes.
int Worker::TimeoutMs() {
  std::optional<std::chrono::milliseconds> wait = UntilIdleExit();
  if (!idle_done_) wait.reset();
  if (wait && wait->count() <= 0) {
    stopping_ = MayLeave();
    if (!stopping_) wait = kGatePause;
  }
  const auto at_most = [&wait](std::chrono::milliseconds other) {
    wait = wait ? std::min(*wait, other) : other;
  };
  if (!draining_.empty()) at_most(UntilDrain());
  if (accept_paused_) at_most(kAcceptPause);
  if (!idle_done_) at_most(UntilIdleWork());
  return wait ? static_cast<int>(std::max<std::int64_t>(0, wait->count())) : -1;
}

void Worker::PollOnce(int timeout_ms) {
  std::vector<pollfd> polls;
  polls.push_back({.fd = options_.stop.get(), .events = POLLIN, .revents = 0});
  polls.push_back(
      {.fd = accept_paused_ ? -1 : options_.listener.get(), .events = POLLIN, .revents = 0});
  std::vector<ClientId> clients;
  for (const auto& [id, client] : clients_) {
    clients.push_back(id);
    polls.push_back({.fd = client->socket.get(), .events = POLLIN, .revents = 0});
  }
  std::vector<control::SandboxId> sandboxes;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (!sandbox->link) continue;
    sandboxes.push_back(id);
    polls.push_back({.fd = sandbox->link.get(), .events = POLLIN, .revents = 0});
  }
  for (const Draining& draining : draining_) {
    if (!draining.monitor_gone) {
      polls.push_back({.fd = draining.monitor.pidfd().get(), .events = POLLIN, .revents = 0});
    }
  }
  const int ready = poll(polls.data(), polls.size(), timeout_ms);
  accept_paused_ = false;
  if (ready <= 0) {
    DrainOnce();
    const bool idle = ready == 0 && !idle_done_ && !stopping_;
    if (idle && UntilIdleWork().count() == 0) IdleStep();
    return;
  }
  if (polls[0].revents != 0) stopping_ = true;
  if (polls[1].revents != 0) AcceptClient();
  std::size_t at = 2;
  for (const ClientId id : clients) {
    if (polls[at++].revents != 0) ReceiveFrom(id);
  }
  for (const control::SandboxId& id : sandboxes) {
    if (polls[at++].revents == 0) continue;
    const auto found = sandboxes_.find(id);
    if (found != sandboxes_.end() && found->second->link) ReceiveFromMonitor(*found->second);
  }
  DrainOnce();
}

void Worker::AcceptClient() {
  auto socket = sys::AcceptPackets(options_.listener);
  if (!socket) {
    if (socket.error().code() != Errc::kUnavailable) {
      Log(StrCat("accept: ", socket.error().message()));
      accept_paused_ = true;
    }
    return;
  }
  const auto peer = sys::PeerOf(*socket);
  const bool known = peer && (peer->uid == options_.server_uid || peer->uid == geteuid());
  if (!known || clients_.size() >= kClientsMax) {
    Log(known ? "a client is refused: too many" : "a client of another user is refused");
    return;
  }
  auto client = std::make_unique<Client>();
  client->socket = *std::move(socket);
  clients_.emplace(next_client_++, std::move(client));
}

void Worker::ReceiveFrom(ClientId id) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  // One byte more than a message: a longer packet shows as another size, not as a cut one.
  std::array<std::uint8_t, control::kMessageBytes + 1> buffer{};
  auto received = sys::ReceivePacket(client->second->socket, buffer, 0);
  if (!received && received.error().errno_value() == EAGAIN) return;
  if (!received || received->size == 0) {
    clients_.erase(client);
    return;
  }
  const auto request = control::DecodeRequest(ByteView(buffer).first(received->size));
  if (!request) {
    // Whoever sends this is broken or broken into; it has to connect again.
    clients_.erase(client);
    return;
  }
  Handle(id, *request);
}

void Worker::Send(ClientId id, const control::Reply& reply, const std::vector<int>& descriptors) {
  const auto client = clients_.find(id);
  if (client == clients_.end()) return;
  if (!sys::SendPacket(client->second->socket, control::Encode(reply), descriptors)) {
    clients_.erase(client);
  }
}

// One slow thing at a time, and only when nobody waits for an answer.
void Worker::IdleStep() {
  while (!to_move_home_.empty()) {
    const control::SandboxId id = to_move_home_.back();
    to_move_home_.pop_back();
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end() || !found->second->link) continue;
    (void)cgroups_.MoveHome(found->second->monitor.pid());
    return;
  }
  auto filled = slots_.FillOne();
  if (filled && !*filled) filled = uppers_.FillOne();
  if (!filled) Log(StrCat("preparing: ", filled.error().message()));
  idle_done_ = !filled || !*filled;
}

void Worker::Stop() {
  // The monitors by themselves too: without root there is no cgroup to kill by.
  for (const auto& [id, sandbox] : sandboxes_) {
    if (!sandbox->cgroup || !sandbox->link) continue;
    sandbox->cgroup->Kill();
    sandbox->monitor.Signal(SIGKILL);
  }
  for (ReadySlot& slot : slots_.TakeAllReady()) {
    slot.cgroup.Kill();
    slot.monitor.Signal(SIGKILL);
    draining_.push_back({.cgroup = std::move(slot.cgroup),
                         .slot = slot.slot,
                         .monitor = std::move(slot.monitor),
                         .sandbox = {},
                         .since = clock_.MonotonicNow()});
  }
  const MonotonicTime end = clock_.MonotonicNow() + kStopPatience;
  const auto living = [this] {
    return std::ranges::any_of(sandboxes_,
                               [](const auto& item) { return bool(item.second->link); });
  };
  options_.stop.Reset();
  while ((living() || !draining_.empty()) && clock_.MonotonicNow() < end) {
    PollOnce(static_cast<int>(kDrainPause.count()));
  }
  cgroups_.RemoveAll();
}

}  // namespace soma::launcher
