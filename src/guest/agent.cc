// SPDX-License-Identifier: Apache-2.0
#include "guest/agent.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "guest/loop.h"
#include "guest/operation.h"
#include "sys/fd.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

constexpr std::size_t kReadSize = std::size_t{32} * 1024;
// While nobody is at the other end of a virtio port, look again this often: its hang-up events are
// not to be relied on (measured).
constexpr int kNobodyTimeoutMs = 250;
constexpr int kHouseworkTimeoutMs = 60'000;

}  // namespace

Agent::Agent(Clock& clock, Loop loop, Fd wire, WireKind kind)
    : clock_(clock),
      loop_(std::move(loop)),
      wire_(std::move(wire)),
      kind_(kind),
      buffer_(kReadSize),
      tasks_(clock),
      egress_(loop_, session_, [this](wire::ChannelId channel, std::unique_ptr<Operation> kept) {
        operations_[channel] = std::move(kept);
      }) {}

Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::Create(Clock& clock, Fd wire, WireKind kind) {
  SOMA_ASSIGN(Loop loop, Loop::Create());
  std::unique_ptr<Agent> agent(new Agent(clock, std::move(loop), std::move(wire), kind));
  SOMA_TRY(agent->SetUp());
  return agent;
}

Status Agent::SetUp() {
  const int flags = ::fcntl(wire_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(wire_.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(wire_.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return std::unexpected(Error::FromErrno(errno, "preparing the wire"));
  }
  // Edge-triggered: a port without a peer reports POLLHUP for ever.
  SOMA_ASSIGN(wire_ready_, loop_.Add(wire_, EPOLLIN | EPOLLOUT | EPOLLET, [this](std::uint32_t) {
    readable_ = true;
    writable_ = true;
  }));
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  if (::sigprocmask(SIG_BLOCK, &mask, nullptr) != 0) {
    return std::unexpected(Error::FromErrno(errno, "sigprocmask"));
  }
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return std::unexpected(Error::FromErrno(errno, "signalfd"));
  SOMA_ASSIGN(signals_ready_, loop_.Add(signals_, EPOLLIN, [this](std::uint32_t) { Reap(); }));
  return {};
}

Status Agent::Run() {
  while (!ended_) {
    bool busy = ReadWire();
    busy |= WriteWire();
    Sweep();
    const int timeout = TimeoutMilliseconds();
    if (ended_) break;
    loop_.RunOnce(busy ? 0 : timeout);
    // What the callbacks have queued, or have made room for.
    DrainEvents();
  }
  return {};
}

int Agent::TimeoutMilliseconds() {
  const auto next = tasks_.Tick();
  int timeout = kHouseworkTimeoutMs;
  if (next) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - clock_.MonotonicNow());
    timeout = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kHouseworkTimeoutMs));
  }
  if (kind_ == WireKind::kVirtio && nobody_there_) {
    readable_ = true;
    writable_ = true;
    timeout = std::min(timeout, kNobodyTimeoutMs);
  }
  return timeout;
}

bool Agent::ReadWire() {
  if (!readable_) return false;
  const ssize_t got = ::read(wire_.get(), buffer_.data(), buffer_.size());
  if (got > 0) {
    nobody_there_ = false;
    session_.OnBytes(ByteView(buffer_).first(static_cast<std::size_t>(got)));
    DrainEvents();
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  readable_ = false;
  if (got < 0 && errno == EAGAIN) return false;
  if (kind_ == WireKind::kVirtio) {
    nobody_there_ = true;
  } else {
    ended_ = true;
  }
  return false;
}

// A frame a call: a virtio port takes it whole or not at all.
bool Agent::WriteWire() {
  bool wrote = false;
  for (int frames = 0; writable_ && frames < 16; ++frames) {
    const ByteView out = session_.Output();
    if (out.empty()) break;
    const ssize_t put = ::write(wire_.get(), out.data(), out.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      writable_ = false;
      break;
    }
    session_.Wrote(static_cast<std::size_t>(put));
    wrote = true;
  }
  if (wrote) DrainEvents();
  return wrote;
}

void Agent::DrainEvents() {
  while (auto event = session_.Next()) OnEvent(*std::move(event));
}

// As pid 1 also of orphans.
void Agent::Reap() {
  signalfd_siginfo ignored{};
  while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
  }
  int status = 0;
  for (auto pid = ::waitpid(-1, &status, WNOHANG); pid > 0; pid = ::waitpid(-1, &status, WNOHANG)) {
    tasks_.OnExit(pid, status);
  }
}

// ---- Events ----

void Agent::OnEvent(wire::SessionEvent event) {
  using Kind = wire::SessionEvent::Kind;
  switch (event.kind) {
    case Kind::kEstablished:
      if (!event.resumed) SayWhoWeAre();
      return;
    case Kind::kMessage:
      return OnMessage(event);
    case Kind::kWritable:
      if (const auto reader = readers_.find(event.channel); reader != readers_.end()) {
        if (const auto task = tasks_.Find({.pid = static_cast<std::uint32_t>(reader->second)})) {
          (*task)->Pump(event.channel);
        }
      } else if (const auto it = operations_.find(event.channel); it != operations_.end()) {
        it->second->OnWritable();
      }
      return;
    case Kind::kQuiesced:
    case Kind::kResumed:
    case Kind::kBroken:
      return;
  }
}

void Agent::OnMessage(wire::SessionEvent& event) {
  if (event.opens) return OnRequest(event.channel, std::move(event.message));
  if ((event.channel & wire::kGuestChannelBit) != 0) {
    const auto own = operations_.find(event.channel);
    if (own != operations_.end()) own->second->OnReply(event.message);
    return;
  }
  if (event.closes && !std::holds_alternative<wire::End>(event.message)) {
    return ForgetChannel(event.channel);
  }
  const auto it = operations_.find(event.channel);
  if (it != operations_.end()) it->second->OnMessage(event.message);
}

void Agent::OnRequest(wire::ChannelId channel, wire::Message message) {
  const Status done = std::visit(
      [&](auto& request) -> Status {
        if constexpr (requires { Handle(channel, request); }) {
          return Handle(channel, request);
        } else {
          return Fail(Errc::kUnimplemented, "unknown request");  // the session lets none through
        }
      },
      message);
  if (!done) static_cast<void>(session_.Reply(channel, ToFailed(done.error())));
}

void Agent::ForgetChannel(wire::ChannelId channel) {
  operations_.erase(channel);
  const auto reader = readers_.find(channel);
  if (reader == readers_.end()) return;
  const auto task = tasks_.Find({.pid = static_cast<std::uint32_t>(reader->second)});
  if (task) (*task)->Detach(channel);
  readers_.erase(reader);
}

// Operations and readers whose channel was closed from here.
void Agent::Sweep() {
  if (operations_.size() + readers_.size() == session_.channel_count()) return;
  std::erase_if(operations_, [&](const auto& item) {
    return !session_.IsOpen(item.first) && !item.second->HasWork();
  });
  std::erase_if(readers_, [&](const auto& item) { return !session_.IsOpen(item.first); });
}

void Agent::SayWhoWeAre() {
  utsname name{};
  ::uname(&name);
  std::vector<std::string> features = {"watch"};
  if (egress_.serving()) features.emplace_back("egress");
  const auto said = session_.Announce(
      wire::Identity{.agent = "soma-guest 0.1.0",
                     .kernel_release = name.release,
                     .machine = name.machine,
                     .pid = static_cast<std::uint32_t>(::getpid()),
                     .tasks_running = static_cast<std::uint32_t>(tasks_.running_count())});
  static_cast<void>(said);  // its fields are short
}

}  // namespace soma::guest
