// SPDX-License-Identifier: Apache-2.0
// Clock and Random: the two sources of non-determinism that rooms get passed in, so that tests can
// hold them still. `main` makes the real ones (sys/real_clock.h) and hands them down; nothing looks
// them up globally.
#ifndef SOMA_BASE_CLOCK_H_
#define SOMA_BASE_CLOCK_H_

#include <chrono>
#include <cstdint>
#include <span>

namespace soma {

// Wall time, UTC, microseconds since 1970; for records and for what people read. Never for
// measuring.
using WallTime = std::chrono::sys_time<std::chrono::microseconds>;
// Time since boot without jumps (CLOCK_MONOTONIC); for deadlines and leases.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() = 0;
  virtual MonotonicTime MonotonicNow() = 0;
};

class Random {
 public:
  virtual ~Random() = default;
  // Fills with bytes fit for keys and tokens. Cannot fail: the real one blocks until the kernel's
  // pool is ready.
  virtual void Fill(std::span<std::uint8_t> out) = 0;
};

}  // namespace soma

#endif  // SOMA_BASE_CLOCK_H_
