// SPDX-License-Identifier: Apache-2.0
// The real clock and the real randomness. Made once, by main, and handed down as Clock& and
// Random&.
#ifndef SOMA_SYS_REAL_CLOCK_H_
#define SOMA_SYS_REAL_CLOCK_H_

#include <cstdint>
#include <span>

#include "base/clock.h"

namespace soma::sys {

class RealClock final : public Clock {
 public:
  WallTime Now() override;
  MonotonicTime MonotonicNow() override;
};

// getrandom(2): blocks only until the kernel's pool was filled once after boot.
class RealRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> out) override;
};

}  // namespace soma::sys

#endif  // SOMA_SYS_REAL_CLOCK_H_
