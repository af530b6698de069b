// SPDX-License-Identifier: Apache-2.0
// Channel: the packets between a launcher and the inside of its task, over one SOCK_SEQPACKET pair.
// Both ends are forks of one program, so the layout is the struct's own. Everything here works
// between fork and exec.
//
// The launcher's end closes when the launcher dies; init sees that and ends the task. The task's
// end is closed by exec, so nothing of the task can speak on it.
#ifndef SOMA_WALLS_CHANNEL_H_
#define SOMA_WALLS_CHANNEL_H_

#include <sys/types.h>

#include <cstdint>
#include <span>

#include "walls/step.h"

namespace soma::walls {

enum class PacketKind : std::uint8_t {
  kGo = 1,   // launcher: id maps are written, the cgroup is entered; go on
  kSignal,   // launcher: `value` to the command, `group`: to its process group
  kStage,    // outer: carries the pidfd of the process that becomes the task; `value` is its pid
  kStands,   // task: all walls stand; carries what was asked for, `value` are Handed bits
  kFailed,   // task: step, item, value = errno
  kStarted,  // task: the command was executed
  kEnded,    // task: value = wait status, and the usage
};

// Which descriptors kStands carries, in this order.
enum Handed : std::uint32_t {
  kHandedListener = 1U << 0,
  kHandedTerminal = 1U << 1,
  kHandedCapture = 1U << 2,  // four
};

struct Packet {
  PacketKind kind = PacketKind::kGo;
  Step step = Step::kNone;
  std::uint8_t group = 0;
  std::uint32_t item = 0;
  std::int32_t value = 0;
  std::uint64_t user_time_us = 0;
  std::uint64_t system_time_us = 0;
  std::uint64_t resident_bytes_max = 0;
};

// 0 or an errno.
int SendPacket(int channel, const Packet& packet, std::span<const int> descriptors = {}) noexcept;
// True when a packet came; false when the peer is gone or the packet isn't one.
bool ReceivePacket(int channel, Packet& packet) noexcept;

// Tells the launcher which step failed, and ends this process.
[[noreturn]] void FailStep(int channel, const StepFailure& failure) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_CHANNEL_H_
