// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_task.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "runtime/guest_link.h"
#include "sandbox/foreground_end.h"
#include "sys/fd.h"
#include "sys/pseudo_terminal.h"
#include "wire/message.h"

namespace soma::sandbox {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::hours kLong{1};
constexpr std::chrono::milliseconds kOutputPause{2};
// A pipe that poll(2) calls writable takes PIPE_BUF bytes without blocking (pipe(7)).
constexpr std::size_t kOutputPiece = 4096;
constexpr std::uint8_t kEndOfTransmission = 4;  // ^D: what a terminal reads as the end of its input
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

bool IsReady(int fd, short events) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

// Borrows one of our standard streams for calls that want an Fd.
class Borrowed {
 public:
  explicit Borrowed(int number) : fd_(number) {}
  ~Borrowed() { (void)fd_.Release(); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  const Fd& fd() const { return fd_; }

 private:
  Fd fd_;
};

wire::TerminalSize OurSize() {
  const Borrowed output(STDOUT_FILENO);
  const sys::WindowSize size = sys::GetWindowSize(output.fd()).value_or(sys::WindowSize{});
  return {.columns = size.columns, .rows = size.rows};
}

// The guest's refusal to start something: the command's fault has a shell's code, the rest is ours.
Result<TaskEnd> NotStarted(Error error) {
  if (!error.message().starts_with("cannot execute '")) return std::unexpected(std::move(error));
  const int code = error.code() == Errc::kNotFound ? kNotFound : kCannotExecute;
  return TaskEnd{.exit_code = code, .started = false, .timed_out = false, .how = error.message()};
}

TaskEnd FromExit(const wire::Exit& exit) {
  // The guest's numbers are foreign: only what a shell could say gets out.
  const int code = exit.signal != 0 ? 128 + (exit.signal & 0x7f) : exit.code & 0xff;
  return {.exit_code = code, .started = true, .timed_out = exit.timed_out, .how = exit.status};
}

}  // namespace

ForegroundTask::ForegroundTask(aio::Loop& loop, runtime::GuestLink& link, wire::Start start,
                               std::function<aio::Task<void>()> raw_terminal)
    : loop_(loop), link_(link), start_(std::move(start)), raw_terminal_(std::move(raw_terminal)) {}

aio::Task<TaskEnd> ForegroundTask::Run() {
  start_.has_stdin = !start_.has_terminal;
  if (start_.has_terminal) start_.terminal = OurSize();
  SOMA_CO_ASSIGN(auto channel, link_.Request(start_));
  auto reply = co_await channel->Next(kPatience);
  if (!reply) co_return NotStarted(std::move(reply).error());
  const auto* started = std::get_if<wire::Started>(&*reply);
  if (started == nullptr) co_return Fail(Errc::kInternal, "the guest starts without saying so");
  pid_ = started->pid;
  if (start_.has_terminal) SOMA_CO_TRY(co_await raw_terminal_());
  for (const int signal : std::exchange(pending_, {})) SOMA_CO_TRY(co_await Forward(signal));
  loop_.SpawnRoot(PumpInput());
  auto end = co_await Follow(std::move(channel));
  pid_ = 0;
  co_return end;
}

aio::Task<TaskEnd> ForegroundTask::Follow(std::shared_ptr<runtime::GuestChannel> channel) {
  for (;;) {
    auto message = co_await channel->Next(kLong);
    if (!message && message.error().code() == Errc::kDeadlineExceeded && link_.alive()) continue;
    if (!message) co_return std::unexpected(std::move(message).error());
    if (const auto* exit = std::get_if<wire::Exit>(&*message)) co_return FromExit(*exit);
    if (auto* data = std::get_if<wire::Data>(&*message)) {
      SOMA_CO_TRY(co_await Emit(data->kind, std::move(data->bytes)));
    }
  }
}

aio::Task<void> ForegroundTask::Emit(wire::DataKind kind, Bytes bytes) {
  Sink& sink = sinks_[kind == wire::DataKind::kStderr ? 1 : 0];
  ByteView rest = bytes;
  while (!rest.empty() && !sink.gone) {
    // Checked instead of waited for: an output may be a regular file, which epoll refuses.
    if (!IsReady(sink.fd, POLLOUT)) {
      co_await aio::Sleep(loop_, kOutputPause);
      continue;
    }
    const ssize_t put = ::write(sink.fd, rest.data(), std::min(rest.size(), kOutputPiece));
    if (put >= 0) {
      rest = rest.subspan(static_cast<std::size_t>(put));
    } else if (errno != EINTR && errno != EAGAIN) {
      // Whoever read is gone. The command hears of it as it would from a pipe.
      sink.gone = true;
      SOMA_CO_TRY(co_await Forward(SIGPIPE));
    }
  }
  co_return Status();
}

aio::Task<void> ForegroundTask::Forward(int signal) {
  if (pid_ == 0) {
    if (std::ranges::find(pending_, signal) == pending_.end()) pending_.push_back(signal);
    co_return Status();
  }
  if (signal == SIGWINCH) {
    if (start_.has_terminal) {
      (void)co_await link_.Call(wire::Resize{.task = Selector(), .size = OurSize()}, kPatience);
    }
    co_return Status();
  }
  // A command that has just ended cannot be signalled, and need not be.
  (void)co_await link_.Call(
      wire::Signal{.task = Selector(), .number = static_cast<std::uint8_t>(signal)}, kPatience);
  co_return Status();
}

aio::Task<void> ForegroundTask::EndInput() {
  if (start_.has_terminal) {
    (void)co_await link_.Call(wire::Stdin{.task = Selector(), .bytes = {kEndOfTransmission}},
                              kPatience);
  } else {
    (void)co_await link_.Call(wire::CloseStdin{.task = Selector()}, kPatience);
  }
  co_return Status();
}

aio::Job ForegroundTask::PumpInput() {
  while (pid_ != 0 && link_.alive()) {
    // Asked first: a regular file is always ready, and epoll would refuse it.
    if (!IsReady(STDIN_FILENO, POLLIN)) {
      if (!co_await aio::WaitReadable(loop_, STDIN_FILENO, kLong)) co_return;
      continue;
    }
    Bytes bytes(wire::kDataMax);
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) {
      (void)co_await EndInput();
      co_return;
    }
    bytes.resize(static_cast<std::size_t>(got));
    // Answered when the command has taken it; a command that never reads keeps us here, and only
    // us.
    auto sent = link_.Request(wire::Stdin{.task = Selector(), .bytes = std::move(bytes)});
    if (!sent) co_return;
    for (;;) {
      const auto taken = co_await (*sent)->Next(kLong);
      if (taken) break;
      if (taken.error().code() != Errc::kDeadlineExceeded) co_return;
    }
  }
}

}  // namespace soma::sandbox
