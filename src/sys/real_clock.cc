// SPDX-License-Identifier: Apache-2.0
#include "sys/real_clock.h"

#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/clock.h"

namespace soma::sys {

WallTime RealClock::Now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

MonotonicTime RealClock::MonotonicNow() { return std::chrono::steady_clock::now(); }

void RealRandom::Fill(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0) {
      SOMA_CHECK(errno == EINTR);
      continue;
    }
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace soma::sys
