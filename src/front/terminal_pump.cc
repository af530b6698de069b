// SPDX-License-Identifier: Apache-2.0
#include "front/terminal_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"
#include "sys/pseudo_terminal.h"

namespace soma::front {

namespace {

constexpr char kEndOfTransmission = 4;  // ^D: what a terminal reads as the end of its input

bool IsReady(const std::vector<pollfd>& polls, int fd, short events) {
  for (const pollfd& one : polls) {
    if (one.fd == fd && (one.revents & (events | POLLHUP | POLLERR)) != 0) return true;
  }
  return false;
}

}  // namespace

Result<TerminalPump> TerminalPump::Create(Fd master) {
  TerminalPump pump(std::move(master));
  if (fcntl(pump.master_.get(), F_SETFL, O_NONBLOCK) != 0) {
    return std::unexpected(Error::FromErrno(errno, "terminal: fcntl"));
  }
  pump.CopyWindowSize();
  if (isatty(STDIN_FILENO) == 1) {
    SOMA_ASSIGN(sys::RawMode raw, sys::RawMode::Enter(STDIN_FILENO));
    pump.raw_.emplace(std::move(raw));
  }
  return pump;
}

void TerminalPump::AppendPolls(std::vector<pollfd>& polls) const {
  if (input_open_ && input_.empty()) polls.push_back({STDIN_FILENO, POLLIN, 0});
  if (!output_.empty()) polls.push_back({STDOUT_FILENO, POLLOUT, 0});
  if (!output_open_) return;
  const auto wants_in = static_cast<short>(output_.empty() ? POLLIN : 0);
  const auto wants_out = static_cast<short>(input_.empty() ? 0 : POLLOUT);
  if ((wants_in | wants_out) != 0) {
    polls.push_back({master_.get(), static_cast<short>(wants_in | wants_out), 0});
  }
}

bool TerminalPump::Fill(Block& block, int from) {
  const ssize_t got = read(from, block.bytes.data(), block.bytes.size());
  if (got > 0) {
    block.begin = 0;
    block.end = static_cast<std::size_t>(got);
    return true;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

bool TerminalPump::Empty(Block& block, int to) {
  const ssize_t put = write(to, block.bytes.data() + block.begin, block.end - block.begin);
  if (put >= 0) block.begin += static_cast<std::size_t>(put);
  return put >= 0 || errno == EAGAIN || errno == EINTR;
}

void TerminalPump::Pump(const std::vector<pollfd>& polls) {
  if (input_open_ && input_.empty() && IsReady(polls, STDIN_FILENO, POLLIN) &&
      !Fill(input_, STDIN_FILENO)) {
    input_open_ = false;
    input_.bytes[0] = kEndOfTransmission;
    input_.begin = 0;
    input_.end = 1;
  }
  if (!input_.empty() && IsReady(polls, master_.get(), POLLOUT) && !Empty(input_, master_.get())) {
    input_.begin = input_.end;
  }
  // EIO: the last program that had the other side open is gone.
  if (output_open_ && output_.empty() && IsReady(polls, master_.get(), POLLIN)) {
    output_open_ = Fill(output_, master_.get());
  }
  if (!output_.empty() && IsReady(polls, STDOUT_FILENO, POLLOUT) &&
      !Empty(output_, STDOUT_FILENO)) {
    output_.begin = output_.end;
  }
}

void TerminalPump::DrainOutput() {
  for (;;) {
    while (!output_.empty()) {
      if (!Empty(output_, STDOUT_FILENO)) return;
    }
    const ssize_t got = read(master_.get(), output_.bytes.data(), output_.bytes.size());
    if (got <= 0) return;
    output_.begin = 0;
    output_.end = static_cast<std::size_t>(got);
  }
}

void TerminalPump::CopyWindowSize() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO}) {
    const Fd terminal(fcntl(number, F_DUPFD_CLOEXEC, 3));
    if (!terminal) continue;
    if (const auto size = sys::GetWindowSize(terminal)) {
      (void)sys::SetWindowSize(master_, *size);
      return;
    }
  }
}

}  // namespace soma::front
