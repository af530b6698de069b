// SPDX-License-Identifier: Apache-2.0
// Pseudo terminals, and the terminal that a program was started on. Source: ptmx(4), ioctl_tty(2).
#ifndef SOMA_SYS_PSEUDO_TERMINAL_H_
#define SOMA_SYS_PSEUDO_TERMINAL_H_

#include <termios.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

struct TerminalPair {
  int master = -1;  // the side of whoever shows it
  int slave = -1;   // the side of the program
  int error = 0;
};
// A new pair from the devpts instance whose multiplexer is `ptmx_path`; close-on-exec, the slave
// doesn't become the controlling terminal. Between fork and exec too.
TerminalPair OpenTerminalPair(const char* ptmx_path) noexcept;

struct WindowSize {
  std::uint16_t rows = 24;
  std::uint16_t columns = 80;
};
// Nullopt when `terminal` isn't one.
std::optional<WindowSize> GetWindowSize(const Fd& terminal);
Status SetWindowSize(const Fd& terminal, WindowSize size);

// Makes `slave` the controlling terminal; the caller leads its session. 0 or an errno.
int TakeControllingTerminal(int slave) noexcept;

// Raw mode on the terminal `number` (0, 1 or 2) until destroyed.
class RawMode {
 public:
  static Result<RawMode> Enter(int number);
  ~RawMode();
  RawMode(RawMode&& other) noexcept;
  RawMode& operator=(RawMode&&) = delete;

 private:
  RawMode(int number, const termios& before) : number_(number), before_(before) {}
  int number_;
  termios before_;
};

}  // namespace soma::sys

#endif  // SOMA_SYS_PSEUDO_TERMINAL_H_
