// SPDX-License-Identifier: Apache-2.0
// TerminalPump: moves bytes between the user's terminal and the task's own one. Single-threaded,
// driven by the session's poll loop; keeps at most one block in each direction, so that a slow side
// is back-pressure and never memory.
#ifndef SOMA_FRONT_TERMINAL_PUMP_H_
#define SOMA_FRONT_TERMINAL_PUMP_H_

#include <poll.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/pseudo_terminal.h"

namespace soma::front {

class TerminalPump {
 public:
  // Takes the master side. Puts the user's terminal (standard input, if it is one) into raw mode
  // until destroyed, and gives the task its size.
  static Result<TerminalPump> Create(Fd master);

  // Adds what it waits for.
  void AppendPolls(std::vector<pollfd>& polls) const;
  // Moves what can be moved without waiting, after poll(2).
  void Pump(const std::vector<pollfd>& polls);
  // After the task's end: writes what it had said before. Bounded by what the kernel holds.
  void DrainOutput();
  void CopyWindowSize();

 private:
  explicit TerminalPump(Fd master) : master_(std::move(master)) {}

  struct Block {
    std::array<char, 4096> bytes{};  // PIPE_BUF: what a writable pipe takes without waiting
    std::size_t begin = 0;
    std::size_t end = 0;
    bool empty() const { return begin == end; }
  };
  static bool Fill(Block& block, int from);
  static bool Empty(Block& block, int to);

  Fd master_;
  std::optional<sys::RawMode> raw_;
  Block input_;
  Block output_;
  bool input_open_ = true;
  bool output_open_ = true;
};

}  // namespace soma::front

#endif  // SOMA_FRONT_TERMINAL_PUMP_H_
