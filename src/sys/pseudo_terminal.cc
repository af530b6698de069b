// SPDX-License-Identifier: Apache-2.0
#include "sys/pseudo_terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <expected>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

TerminalPair OpenTerminalPair(const char* ptmx_path) noexcept {
  Fd master(::open(ptmx_path, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master) return {.error = errno};
  const int unlocked = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) return {.error = errno};
  // By the master, not by a name: /dev/pts may be another instance.
  const int slave = ::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave < 0) return {.error = errno};
  return {.master = master.Release(), .slave = slave};
}

std::optional<WindowSize> GetWindowSize(const Fd& terminal) {
  winsize size{};
  if (::ioctl(terminal.get(), TIOCGWINSZ, &size) != 0) return std::nullopt;
  return WindowSize{.rows = size.ws_row, .columns = size.ws_col};
}

Status SetWindowSize(const Fd& terminal, WindowSize size) {
  const winsize raw{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (::ioctl(terminal.get(), TIOCSWINSZ, &raw) != 0) {
    return std::unexpected(Error::FromErrno(errno, "set the window size"));
  }
  return {};
}

int TakeControllingTerminal(int slave) noexcept {
  return ::ioctl(slave, TIOCSCTTY, 0) == 0 ? 0 : errno;
}

Result<RawMode> RawMode::Enter(int number) {
  termios before{};
  if (::tcgetattr(number, &before) != 0) {
    return std::unexpected(Error::FromErrno(errno, "read the terminal's mode"));
  }
  termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(number, TCSADRAIN, &raw) != 0) {
    return std::unexpected(Error::FromErrno(errno, "set the terminal's mode"));
  }
  return RawMode(number, before);
}

RawMode::RawMode(RawMode&& other) noexcept
    : number_(std::exchange(other.number_, -1)), before_(other.before_) {}

RawMode::~RawMode() {
  if (number_ >= 0) ::tcsetattr(number_, TCSADRAIN, &before_);
}

}  // namespace soma::sys
