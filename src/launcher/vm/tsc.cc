// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/tsc.h"

#include <time.h>
#include <x86intrin.h>

#include <cstdint>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::launcher {
namespace {

// The error is the time between the two readings of one sample, some 50 ns: 3 parts in a million of
// this span.
constexpr timespec kSpan = {.tv_sec = 0, .tv_nsec = 20'000'000};
// Slower or faster than any processor sold: the counter was stopped, reset or moved to another
// machine in between.
constexpr std::uint64_t kKhzMin = 200'000;
constexpr std::uint64_t kKhzMax = 20'000'000;

struct Sample {
  std::uint64_t ticks;
  std::uint64_t nanoseconds;
};

Sample Take() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return {.ticks = __rdtsc(),
          .nanoseconds = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
                         static_cast<std::uint64_t>(now.tv_nsec)};
}

}  // namespace

Result<std::uint64_t> MeasureTscKhz() {
  const Sample begin = Take();
  nanosleep(&kSpan, nullptr);
  const Sample end = Take();
  if (end.ticks <= begin.ticks || end.nanoseconds <= begin.nanoseconds) {
    return Fail(Errc::kUnimplemented, "the time stamp counter does not advance");
  }
  const std::uint64_t khz =
      (end.ticks - begin.ticks) * 1'000'000U / (end.nanoseconds - begin.nanoseconds);
  if (khz < kKhzMin || khz > kKhzMax) {
    return Fail(Errc::kUnimplemented, StrCat("the time stamp counter runs at ", khz, " kHz"));
  }
  return khz;
}

}  // namespace soma::launcher
