// SPDX-License-Identifier: Apache-2.0
#include "guest/machine_stats.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "sys/plain_file.h"
#include "wire/reply.h"

namespace soma::guest {
namespace {

std::string ReadText(const std::string& path) {
  auto text = sys::ReadWholeFile(path, std::size_t{64} * 1024);
  return text ? *std::move(text) : std::string();
}

// The number behind "key" at the begin of a line ("MemTotal:  123 kB", "usage_usec 5").
std::uint64_t Field(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line = Trim(line.substr(key.size()));
    if (const auto number = ParseInt<std::uint64_t>(Split(line, ' ')[0])) return *number;
  }
  return 0;
}

std::uint64_t Number(const std::string& path) {
  return ParseInt<std::uint64_t>(Trim(Split(ReadText(path), '\n')[0])).value_or(0);
}

void ReadMemory(wire::Stats& stats) {
  constexpr std::uint64_t kKilo = 1024;
  const std::string info = ReadText("/proc/meminfo");
  stats.memory_total_bytes = Field(info, "MemTotal:") * kKilo;
  stats.memory_cache_bytes = Field(info, "Cached:") * kKilo;
  stats.memory_used_bytes = stats.memory_total_bytes - Field(info, "MemAvailable:") * kKilo;
  // cgroup v2, seen from a cgroup namespace whose root this sandbox is.
  const std::uint64_t current = Number("/sys/fs/cgroup/memory.current");
  if (current == 0) return;
  const std::string details = ReadText("/sys/fs/cgroup/memory.stat");
  stats.memory_cache_bytes = Field(details, "file ");
  stats.memory_used_bytes = current - std::min(current, Field(details, "inactive_file "));
  const std::uint64_t limit = Number("/sys/fs/cgroup/memory.max");
  if (limit != 0) stats.memory_total_bytes = std::min(limit, stats.memory_total_bytes);
}

void ReadProcessors(wire::Stats& stats) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    stats.cpu_count = static_cast<std::uint32_t>(CPU_COUNT(&set));
  }
  stats.cpu_used_us = Field(ReadText("/sys/fs/cgroup/cpu.stat"), "usage_usec ");
  if (stats.cpu_used_us != 0) return;
  // /proc/stat, proc(5): user nice system idle iowait irq softirq steal, in ticks.
  const std::string text = ReadText("/proc/stat");
  std::uint64_t ticks = 0;
  std::size_t column = 0;
  for (const std::string_view part : Split(Split(text, '\n')[0], ' ')) {
    const auto number = ParseInt<std::uint64_t>(part);
    if (!number) continue;
    constexpr std::size_t kIdle = 3;
    constexpr std::size_t kWait = 4;
    constexpr std::size_t kColumns = 8;
    if (column != kIdle && column != kWait && column < kColumns) ticks += *number;
    ++column;
  }
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  stats.cpu_used_us = ticks * kMicroseconds / per_second;
}

}  // namespace

wire::Stats ReadMachineStats() {
  wire::Stats stats;
  ReadProcessors(stats);
  ReadMemory(stats);
  struct statvfs disk{};
  if (::statvfs("/", &disk) == 0) {
    stats.disk_total_bytes = std::uint64_t{disk.f_blocks} * disk.f_frsize;
    stats.disk_used_bytes = std::uint64_t{disk.f_blocks - disk.f_bfree} * disk.f_frsize;
  }
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  stats.uptime_ms = static_cast<std::uint64_t>(now.tv_sec) * 1000 +
                    static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  return stats;
}

}  // namespace soma::guest
