// SPDX-License-Identifier: Apache-2.0
#include "guest/task.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/exit_text.h"
#include "guest/loop.h"
#include "guest/output_ring.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "sys/pseudo_terminal.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {

Task::Task(Loop& loop, wire::Session& session, wire::TaskInfo info, sys::Process process)
    : loop_(loop), session_(session), info_(std::move(info)), process_(std::move(process)) {}

Task::~Task() {
  for (const Reader& reader : readers_) {
    session_.Abort(reader.channel, Errc::kDataLoss, "the task's output was forgotten");
  }
}

Status Task::Connect(TaskStreams streams) {
  if (info_.has_terminal) {
    Fd input(::fcntl(streams.terminal.get(), F_DUPFD_CLOEXEC, 0));
    if (!input) return std::unexpected(Error::FromErrno(errno, "duplicating the terminal"));
    SOMA_TRY(AddSource(sources_[0], wire::DataKind::kPty, std::move(streams.terminal)));
    return AddInput(std::move(input));
  }
  SOMA_TRY(AddSource(sources_[0], wire::DataKind::kStdout, std::move(streams.output)));
  SOMA_TRY(AddSource(sources_[1], wire::DataKind::kStderr, std::move(streams.error)));
  return streams.input ? AddInput(std::move(streams.input)) : Status{};
}

Status Task::AddSource(Source& source, wire::DataKind kind, Fd fd) {
  source.kind = kind;
  source.fd = std::move(fd);
  SOMA_ASSIGN(source.registration, loop_.Add(source.fd, EPOLLIN, [this, &source](std::uint32_t) {
    OnOutputReady(source);
  }));
  return {};
}

Status Task::AddInput(Fd fd) {
  input_ = std::move(fd);
  SOMA_ASSIGN(input_ready_, loop_.Add(input_, 0, [this](std::uint32_t) { FlushInput(); }));
  return {};
}

// ---- Output ----

bool Task::OutputIsOpen() const {
  return std::ranges::any_of(sources_, [](const Source& source) { return bool(source.fd); });
}

std::size_t Task::Room() const {
  if (readers_.empty()) return OutputRing::kChunkMax;
  const auto slowest = std::ranges::min_element(readers_, {}, &Reader::position);
  return ring_.RoomKeeping(slowest->position);
}

void Task::WantOutput() {
  const std::uint32_t events = Room() > 0 ? EPOLLIN : 0;
  for (Source& source : sources_) source.registration.Want(events);
}

void Task::OnOutputReady(Source& source) {
  if (const std::size_t room = Room(); room > 0) ReadSome(source, room);
  PumpAll();
}

void Task::ReadSome(Source& source, std::size_t room) {
  std::array<std::uint8_t, OutputRing::kChunkMax> buffer;
  std::size_t size = std::min(room, buffer.size());
  if (source.budget) size = std::min(size, *source.budget);
  const ssize_t got = ::read(source.fd.get(), buffer.data(), size);
  if (got < 0 && errno == EINTR) return;
  if (got < 0 && errno == EAGAIN && !source.budget) return;
  // EIO is how a terminal says that its last user is gone.
  if (got <= 0) return Close(source);
  ring_.Append(source.kind, ByteView(buffer).first(static_cast<std::size_t>(got)));
  if (!source.budget) return;
  *source.budget -= static_cast<std::size_t>(got);
  if (*source.budget == 0) Close(source);
}

void Task::Close(Source& source) {
  source.registration.Reset();
  source.fd.Reset();
  if (info_.has_terminal) FailInput("the terminal is closed");
}

// A terminal needs no cut: it hangs up when the leader of its session ends.
void Task::CutOutput() {
  if (info_.has_terminal) return;
  for (Source& source : sources_) {
    if (!source.fd || source.budget) continue;
    int left = 0;
    if (::ioctl(source.fd.get(), FIONREAD, &left) != 0 || left <= 0) {
      Close(source);
    } else {
      source.budget = static_cast<std::size_t>(left);
    }
  }
}

// ---- Readers ----

void Task::Attach(wire::ChannelId channel) {
  const wire::Started started{.pid = static_cast<std::uint32_t>(pid()), .tag = info_.tag};
  if (!session_.Reply(channel, started)) return;
  readers_.push_back({.channel = channel});
  PumpAll();
}

void Task::Detach(wire::ChannelId channel) {
  std::erase_if(readers_, [&](const Reader& reader) { return reader.channel == channel; });
  WantOutput();
}

void Task::Pump(wire::ChannelId) { PumpAll(); }

void Task::PumpAll() {
  std::erase_if(readers_, [this](Reader& reader) { return PumpReader(reader); });
  WantOutput();
}

bool Task::PumpReader(Reader& reader) {
  while (reader.position < ring_.end()) {
    if (reader.position < ring_.begin()) {
      const std::uint64_t lost = ring_.begin() - reader.position;
      if (!session_.Reply(reader.channel, wire::Cut{.lost_bytes = lost})) return true;
      reader.position = ring_.begin();
    }
    const OutputRing::Piece piece = ring_.Read(reader.position);
    const std::size_t taken = session_.Write(reader.channel, piece.kind, piece.bytes);
    reader.position += taken;
    if (taken < piece.bytes.size()) return !session_.IsOpen(reader.channel);
  }
  if (!ended()) return false;
  wire::Exit exit = ExitFromStatus(*exit_);
  exit.timed_out = timed_out_;
  static_cast<void>(session_.Reply(reader.channel, exit));
  return true;
}

// ---- Input ----

void Task::WriteInput(wire::ChannelId channel, Bytes bytes) {
  if (!input_ || close_input_when_flushed_) {
    static_cast<void>(session_.Reply(
        channel, wire::Failed{.code = Errc::kInternal, .message = "stdin is not open"}));
    return;
  }
  if (pending_input_bytes_ + bytes.size() > kPendingInputMax) {
    static_cast<void>(session_.Reply(channel, wire::Failed{.code = Errc::kResourceExhausted,
                                                           .message = "too much unread stdin"}));
    return;
  }
  pending_input_bytes_ += bytes.size();
  pending_input_.push_back({.channel = channel, .bytes = std::move(bytes)});
  FlushInput();
}

void Task::FlushInput() {
  while (!pending_input_.empty()) {
    PendingInput& front = pending_input_.front();
    const ByteView left = ByteView(front.bytes).subspan(front.offset);
    const ssize_t put = left.empty() ? 0 : ::write(input_.get(), left.data(), left.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return input_ready_.Want(EPOLLOUT);
    if (put < 0) return FailInput(StrCat("stdin: ", ErrnoName(errno)));
    front.offset += static_cast<std::size_t>(put);
    pending_input_bytes_ -= static_cast<std::size_t>(put);
    if (front.offset < front.bytes.size()) continue;
    static_cast<void>(session_.Reply(front.channel, wire::Ok{}));
    pending_input_.pop_front();
  }
  input_ready_.Want(0);
  if (close_input_when_flushed_) FailInput({});
}

void Task::FailInput(const std::string& why) {
  for (const PendingInput& pending : std::exchange(pending_input_, {})) {
    static_cast<void>(
        session_.Reply(pending.channel, wire::Failed{.code = Errc::kInternal, .message = why}));
  }
  pending_input_bytes_ = 0;
  input_ready_.Reset();
  input_.Reset();
}

void Task::CloseInput(wire::ChannelId channel) {
  if (info_.has_terminal) {
    static_cast<void>(
        session_.Reply(channel, wire::Failed{.code = Errc::kFailedPrecondition,
                                             .message = "a terminal's input has no end"}));
    return;
  }
  static_cast<void>(session_.Reply(channel, wire::Ok{}));
  if (!input_) return;
  close_input_when_flushed_ = true;
  if (pending_input_.empty()) FailInput({});
}

Status Task::Resize(wire::TerminalSize size) {
  if (!info_.has_terminal || !sources_[0].fd) {
    return Fail(Errc::kFailedPrecondition, "the process has no terminal");
  }
  return sys::SetWindowSize(sources_[0].fd, {.rows = size.rows, .columns = size.columns});
}

// ---- The end ----

Status Task::Signal(int number) {
  const bool ends = number == SIGTERM || number == SIGKILL;
  if (exit_) {
    if (!ends || ended()) {
      return Fail(Errc::kNotFound, StrCat("process with pid ", pid(), " not found"));
    }
    // Only its children are left, on its pipes.
    CutOutput();
    PumpAll();
    return {};
  }
  if (!process_.Signal(number)) {
    return std::unexpected(Error::FromErrno(errno, StrCat("signal ", number)));
  }
  was_ended_by_signal_ |= ends;
  return {};
}

void Task::TimeOut() {
  deadline.reset();
  if (ended()) return;
  timed_out_ = !exit_;
  static_cast<void>(Signal(SIGKILL));
}

void Task::OnExit(int wait_status) {
  exit_ = wait_status;
  deadline.reset();
  process_ = sys::Process(pid(), Fd());  // a descriptor that nobody needs any more
  if (was_ended_by_signal_) CutOutput();
  PumpAll();
}

}  // namespace soma::guest
