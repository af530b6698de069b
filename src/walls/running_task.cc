// SPDX-License-Identifier: Apache-2.0
#include "walls/running_task.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "walls/channel.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

constexpr std::size_t kHandedMax = 6;

TaskEnd EndOf(const sys::ProcessEnd& end) {
  const auto microseconds = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_usec);
  };
  return {.kind = end.exited ? TaskEndKind::kExited : TaskEndKind::kSignalled,
          .code = end.code,
          .core_dumped = end.core_dumped,
          .user_time_us = microseconds(end.usage.ru_utime),
          .system_time_us = microseconds(end.usage.ru_stime),
          .resident_bytes_max = static_cast<std::uint64_t>(end.usage.ru_maxrss) * 1024};
}

TaskEnd EndOf(const Packet& packet) {
  TaskEnd end = EndOf(sys::ProcessEndFromStatus(packet.value, {}));
  end.user_time_us = packet.user_time_us;
  end.system_time_us = packet.system_time_us;
  end.resident_bytes_max = packet.resident_bytes_max;
  return end;
}

TaskEnd NotStarted(const Packet& packet) {
  return {.kind = TaskEndKind::kNotStarted,
          .failure = {.step = packet.step, .item = packet.item, .errno_value = packet.value}};
}

}  // namespace

int TaskEnd::ExitCode() const {
  switch (kind) {
    case TaskEndKind::kExited:
      return code;
    case TaskEndKind::kSignalled:
      return 128 + code;
    case TaskEndKind::kNotStarted:
      if (failure.step != Step::kExecute) return 125;
      return failure.errno_value == ENOENT ? 127 : 126;
    case TaskEndKind::kLost:
      return 128 + SIGKILL;
  }
  return 125;
}

std::string TaskEnd::Describe() const {
  switch (kind) {
    case TaskEndKind::kExited:
      return StrCat("exited with ", code);
    case TaskEndKind::kSignalled: {
      const char* const name = ::sigabbrev_np(code);
      return name != nullptr ? StrCat("killed by SIG", name) : StrCat("killed by signal ", code);
    }
    case TaskEndKind::kNotStarted:
      return StrCat(StepName(failure.step), ": ", ErrnoName(failure.errno_value));
    case TaskEndKind::kLost:
      return "killed from outside";
  }
  return "?";
}

Result<sys::ReceivedPacket> RunningTask::State::Receive(Packet& packet) {
  std::uint8_t bytes[sizeof(Packet)];
  SOMA_ASSIGN(auto received, sys::ReceivePacket(channel, bytes, kHandedMax));
  if (received.size != 0 && received.size != sizeof packet) {
    return Fail(Errc::kInternal, "a packet of another size came");
  }
  std::memcpy(&packet, bytes, received.size);
  return received;
}

Status RunningTask::State::TakeHanded(const Packet& packet, std::vector<Fd> descriptors) {
  const auto handed = static_cast<std::uint32_t>(packet.value);
  std::size_t next = 0;
  const auto take = [&](Fd& out) {
    if (next < descriptors.size()) out = std::move(descriptors[next++]);
    return static_cast<bool>(out);
  };
  bool whole = true;
  if ((handed & kHandedListener) != 0) whole &= take(listener);
  if ((handed & kHandedTerminal) != 0) whole &= take(terminal);
  if ((handed & kHandedCapture) != 0) {
    whole = whole && take(capture.tcp4) && take(capture.tcp6) && take(capture.dns_udp4) &&
            take(capture.dns_tcp4);
  }
  if (!whole) return Fail(Errc::kInternal, "a descriptor is missing (too many open files?)");
  return {};
}

void RunningTask::State::Kill() {
  const bool loop_ends_it = plan.init && !Has(plan.namespaces, Namespaces::kPid) && started;
  if (loop_ends_it) {
    // Without a pid namespace only init finds all descendants: closing our direction tells it to.
    if (channel) ::shutdown(channel.get(), SHUT_WR);
    return;
  }
  if (!reaped && process.pid() > 0) (void)process.Signal(SIGKILL);
}

void RunningTask::State::EndNow() {
  if (process.pid() > 0 && !reaped) {
    (void)process.Signal(SIGKILL);
    (void)process.Wait();
    reaped = true;
  }
  cgroups.Remove();
}

std::optional<TaskEvent> RunningTask::State::MarkStarted() {
  if (std::exchange(started, true)) return std::nullopt;
  return TaskEvent{.kind = TaskEventKind::kStarted, .end = {}};
}

std::optional<TaskEvent> RunningTask::State::AdvanceChannel() {
  while (channel) {
    pollfd ready{.fd = channel.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 0) != 1) return std::nullopt;
    Packet packet;
    auto received = Receive(packet);
    if (!received || received->size == 0) {
      channel.Reset();
      // Without an init it is the exec that closes the channel (or the end, which AdvanceProcess
      // tells).
      if (!plan.init && !reported) return MarkStarted();
      return std::nullopt;
    }
    if (packet.kind == PacketKind::kStarted) return MarkStarted();
    if (packet.kind == PacketKind::kEnded) reported = EndOf(packet);
    if (packet.kind == PacketKind::kFailed) reported = NotStarted(packet);
  }
  return std::nullopt;
}

std::optional<TaskEvent> RunningTask::State::AdvanceProcess() {
  // Init's last packet comes before its end, so an open channel says that there is nothing to reap
  // yet.
  if (channel || reaped) return std::nullopt;
  auto ended = process.TryWait();
  if (ended && !*ended) return std::nullopt;
  reaped = true;
  cgroups.Remove();
  TaskEnd end;  // kLost
  if (reported) {
    end = *reported;
  } else if (!plan.init && ended) {
    end = EndOf(**ended);
  }
  return TaskEvent{.kind = TaskEventKind::kEnded, .end = end};
}

std::optional<TaskEvent> RunningTask::State::Advance() {
  auto event = AdvanceChannel();
  return event ? event : AdvanceProcess();
}

RunningTask::RunningTask(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunningTask::RunningTask(RunningTask&&) noexcept = default;
RunningTask& RunningTask::operator=(RunningTask&& other) noexcept {
  if (this != &other) {
    if (state_ && !state_->reaped) state_->Kill();
    state_ = std::move(other.state_);
  }
  return *this;
}
RunningTask::~RunningTask() {
  if (state_ && !state_->reaped) state_->Kill();
}

pid_t RunningTask::pid() const { return state_->process.pid(); }
int RunningTask::channel() const { return state_->channel.get(); }
int RunningTask::pidfd() const { return state_->reaped ? -1 : state_->process.pidfd().get(); }

std::optional<TaskEvent> RunningTask::Advance() { return state_->Advance(); }

TaskEnd RunningTask::Wait() {
  for (;;) {
    const auto event = state_->Advance();
    if (event && event->kind == TaskEventKind::kEnded) return event->end;
    if (event) continue;
    if (state_->reaped) return state_->reported.value_or(TaskEnd{});
    pollfd fds[] = {{.fd = channel(), .events = POLLIN, .revents = 0},
                    {.fd = state_->channel ? -1 : pidfd(), .events = POLLIN, .revents = 0}};
    (void)::poll(fds, 2, -1);
  }
}

void RunningTask::Signal(int signal, Whom whom) {
  if (!state_->plan.init) {
    if (state_->reaped) return;
    // The command leads its own session, and its number is its own until it is reaped.
    const bool group = whom == Whom::kGroup && state_->plan.terminal != TerminalKind::kKeep;
    if (!group || ::kill(-pid(), signal) != 0) (void)state_->process.Signal(signal);
    return;
  }
  if (!state_->channel) return;
  const Packet packet{.kind = PacketKind::kSignal,
                      .group = static_cast<std::uint8_t>(whom == Whom::kGroup),
                      .value = signal};
  (void)SendPacket(state_->channel.get(), packet);
}

void RunningTask::Kill() { state_->Kill(); }

Fd RunningTask::TakeListener() { return std::move(state_->listener); }
Fd RunningTask::TakeTerminal() { return std::move(state_->terminal); }
CaptureSockets RunningTask::TakeCapture() { return std::move(state_->capture); }
const std::vector<std::string>& RunningTask::cgroup_directories() const {
  return state_->cgroups.directories();
}

}  // namespace soma::walls
