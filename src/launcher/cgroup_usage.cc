// SPDX-License-Identifier: Apache-2.0
// What a slot's processes take, as its cgroups say.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "control/messages.h"
#include "launcher/cgroup_tree.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{64} * 1024;

// The number behind "key" at the beginning of a line; with "" the first one.
std::uint64_t NumberIn(const std::string& path, std::string_view key) {
  const auto text = sys::ReadWholeFile(path, kFileBytesMax);
  if (!text) return 0;
  for (const std::string_view line : Split(*text, '\n')) {
    if (!line.starts_with(key)) continue;
    return ParseInt<std::uint64_t>(Trim(line.substr(key.size()))).value_or(0);
  }
  return 0;
}

}  // namespace

control::SandboxUsage SlotCgroup::Usage() const {
  control::SandboxUsage usage;
  std::uint64_t charged = 0;
  for (const Hierarchy& place : places_) {
    const bool v2 = place.version == CgroupVersion::kV2;
    const std::string& at = place.directory;
    if (place.memory) {
      charged = NumberIn(at + (v2 ? "/memory.current" : "/memory.usage_in_bytes"), "");
      usage.memory_cache_bytes = NumberIn(at + "/memory.stat", v2 ? "file " : "total_cache ");
    }
    // Version 2 counts time without a controller, so also beside version 1.
    if (v2) usage.cpu_microseconds = NumberIn(at + "/cpu.stat", "usage_usec ");
    if (!v2 && place.cpu && usage.cpu_microseconds == 0) {
      constexpr std::uint64_t kNanosecondsPerMicrosecond = 1000;
      usage.cpu_microseconds = NumberIn(at + "/cpuacct.usage", "") / kNanosecondsPerMicrosecond;
    }
  }
  usage.memory_bytes = charged - std::min(charged, usage.memory_cache_bytes);
  return usage;
}

}  // namespace soma::launcher
