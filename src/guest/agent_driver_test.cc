// SPDX-License-Identifier: Apache-2.0
#include "guest/agent_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/check.h"
#include "guest/agent.h"
#include "guest/egress_gate.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "sys/real_clock.h"
#include "sys/seccomp.h"
#include "walls/seccomp_profile.h"
#include "wire/frame.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr wire::LinkSecret kSecret = {7, 7, 7};

// The agent inside this process's copy, or with SOMA_GUEST_PROGRAM the program itself.
[[noreturn]] void RunAgent(int wire, CaptureListeners listeners) {
  const bool has_egress = bool(listeners.tcp4) || bool(listeners.dns_udp4);
  if (const char* program = ::getenv("SOMA_GUEST_PROGRAM"); program != nullptr && !has_egress) {
    constexpr int kWireDescriptor = 3;
    if (wire == kWireDescriptor) {
      ::fcntl(wire, F_SETFD, 0);
    } else {
      ::dup2(wire, kWireDescriptor);
    }
    ::execl(program, "soma-guest", nullptr);
    ::_exit(127);
  }
  ::umask(0);
  sys::RealClock clock;
  auto agent = Agent::Create(clock, Fd(wire), WireKind::kSocket);
  const bool well = agent && (*agent)->ServeEgress(std::move(listeners)) && (*agent)->Run();
  ::_exit(well ? 0 : 1);
}

void LoadRootedFilter() {
  const auto program =
      walls::ProgramFor(walls::SeccompProfile::kRooted, walls::SeccompNotify::kNone);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  SOMA_CHECK(sys::LoadSeccomp(program) == 0);
}

}  // namespace

wire::Start Command(const std::string& text) {
  return {.profile = "strict", .arguments = {"/bin/sh", "-c", text}};
}

AgentDriver::AgentDriver(Filter filter) { Begin(filter, {}); }

AgentDriver::AgentDriver(CaptureListeners listeners) { Begin(Filter::kNone, std::move(listeners)); }

void AgentDriver::Begin(Filter filter, CaptureListeners listeners) {
  std::array<int, 2> ends{};
  SOMA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  wire_ = Fd(ends[0]);
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid == 0) {
    wire_.Reset();
    if (filter == Filter::kRooted) LoadRootedFilter();
    RunAgent(ends[1], std::move(listeners));
  }
  SOMA_CHECK(child.pid > 0);
  ::close(ends[1]);
  agent_ = sys::Process(child.pid, Fd(child.pidfd));
  ::fcntl(wire_.get(), F_SETFL, O_NONBLOCK);
  Reconnect();
}

AgentDriver::~AgentDriver() {
  if (reaped_) return;
  agent_.Signal(SIGKILL);
  static_cast<void>(agent_.Wait());
}

int AgentDriver::WaitForEnd() {
  const auto end = agent_.Wait();
  reaped_ = true;
  return end && end->exited ? end->code : -1;
}

void AgentDriver::Reconnect(bool lose_input) {
  std::array<std::uint8_t, 4096> lost;
  while (lose_input && ::read(wire_.get(), lost.data(), lost.size()) > 0) {
  }
  arrived_.clear();
  session_ = std::make_unique<wire::Session>(wire::Role::kHost);
  session_->Hello({.epoch = epoch_++, .secret = kSecret, .next_secret = kSecret});
  Until([this] { return session_->established(); });
}

void AgentDriver::WriteHalfAFrame() {
  const ByteView out = session_->Output();
  if (!out.empty()) static_cast<void>(!::write(wire_.get(), out.data(), out.size() / 2));
}

wire::ChannelId AgentDriver::Request(const wire::Message& request) {
  const auto channel = session_->Request(request);
  SOMA_CHECK(channel.has_value());
  return *channel;
}

void AgentDriver::Take(wire::SessionEvent event) {
  if (event.kind == wire::SessionEvent::Kind::kBroken) ADD_FAILURE() << event.reason;
  if (event.kind != wire::SessionEvent::Kind::kMessage) return;
  Arrived& arrived = arrived_[event.channel];
  if (const auto* data = std::get_if<wire::Data>(&event.message)) {
    std::string& text = data->kind == wire::DataKind::kStderr ? arrived.err : arrived.out;
    text += AsText(data->bytes);
    if (consuming_) session_->Consumed(event.channel, data->bytes.size());
    return;
  }
  if (const auto* cut = std::get_if<wire::Cut>(&event.message)) arrived.lost += cut->lost_bytes;
  if (event.opens) opened_.emplace_back(event.channel, event.message);
  arrived.closed |= event.closes;
  arrived.messages.push_back(std::move(event.message));
}

void AgentDriver::Step() {
  for (ByteView out = session_->Output(); !out.empty(); out = session_->Output()) {
    const ssize_t put = ::send(wire_.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (put <= 0) break;
    session_->Wrote(static_cast<std::size_t>(put));
  }
  const bool more = !session_->Output().empty();
  pollfd ready{
      .fd = wire_.get(), .events = static_cast<short>(POLLIN | (more ? POLLOUT : 0)), .revents = 0};
  ::poll(&ready, 1, 20);
  std::array<std::uint8_t, std::size_t{32} * 1024> buffer;
  const ssize_t got = ::read(wire_.get(), buffer.data(), buffer.size());
  if (got > 0) session_->OnBytes(ByteView(buffer).first(static_cast<std::size_t>(got)));
  while (auto event = session_->Next()) Take(*std::move(event));
}

void AgentDriver::Until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    Step();
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "waited in vain";
      return;
    }
  }
}

const Arrived& AgentDriver::Finish(wire::ChannelId channel) {
  Until([&] { return arrived_[channel].closed; });
  return arrived_[channel];
}

}  // namespace soma::guest
