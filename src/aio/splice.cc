// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "base/bytes.h"

namespace soma::aio {
namespace {

struct Progress {
  std::uint64_t bytes = 0;
  bool failed = false;
};

// Both deadlines are moved on every piece in either direction, so a stream that only talks one way
// is not idle.
Job CopyOneWay(ByteStream& from, ByteStream& to, Progress& progress,
               std::chrono::nanoseconds idle_max) {
  auto buffer = std::make_unique<std::array<std::uint8_t, std::size_t{32} * 1024>>();
  while (!progress.failed) {
    from.SetReadDeadline(idle_max);
    to.SetReadDeadline(idle_max);
    to.SetWriteDeadline(idle_max);
    const auto size = co_await from.Read(*buffer);
    if (!size) break;
    if (*size == 0) {
      to.ShutdownWrite();
      co_return;
    }
    const auto written = co_await to.Write(ByteView(*buffer).first(*size));
    if (!written) break;
    progress.bytes += *size;
  }
  progress.failed = true;
  from.Close();
  to.Close();
}

}  // namespace

Task<std::uint64_t> Splice(Loop& loop, ByteStream& a, ByteStream& b,
                           std::chrono::nanoseconds idle_max) {
  Progress progress;
  TaskGroup group(loop);
  group.Spawn(CopyOneWay(a, b, progress, idle_max));
  co_await CopyOneWay(b, a, progress, idle_max);
  // Ends by itself: each direction has a deadline, and a failure closes both streams.
  while (!co_await group.Join(std::chrono::hours(1))) {
  }
  a.Close();
  b.Close();
  co_return progress.bytes;
}

}  // namespace soma::aio
