// SPDX-License-Identifier: Apache-2.0
#include "launcher/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "sys/counter_file.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

constexpr std::string_view kHome = "home";
constexpr std::uint64_t kFileBytesMax = 1UL << 20;
constexpr std::uint64_t kCpuPeriodMicros = 100'000;

template <typename Range, typename T>
bool Contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != range.end();
}

Status WriteFile(const std::string& path, std::string_view text) {
  SOMA_ASSIGN(const Fd file, sys::OpenFile(path, O_WRONLY));
  SOMA_TRY_WHILE(sys::WriteAll(file, AsBytes(text)), path);
  return {};
}

Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) < 0 && errno != EEXIST) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", path)));
  }
  return {};
}

std::string SlotName(std::uint32_t slot) { return StrCat("slot-", slot); }

// Whether somebody else than the launcher's two halves lives in this cgroup: a shell and whatever
// it started, where the launcher was started by hand.
bool HasOthers(const std::string& directory) {
  const auto listed = sys::ReadWholeFile(directory + "/cgroup.procs", kFileBytesMax);
  if (!listed) return false;
  return std::ranges::any_of(Split(Trim(*listed), '\n'), [](std::string_view line) {
    const auto pid = ParseInt<pid_t>(line);
    return pid && *pid != getpid() && *pid != getppid();
  });
}

// v2: controllers must be handed down, which the kernel refuses (EBUSY) while the launcher itself
// lives in that cgroup, unless it is the root. Where others live there too, the cgroup above
// serves: it has handed the same controllers down to this one.
Status HandDown(std::string& directory, std::string_view controllers) {
  const std::string file = directory + "/cgroup.subtree_control";
  if (WriteFile(file, controllers)) return {};
  const std::string above = directory.substr(0, directory.rfind('/'));
  if (HasOthers(directory) && access((above + "/cgroup.procs").c_str(), F_OK) == 0) {
    directory = above;
    return {};
  }
  const std::string leaf = StrCat(directory, kLauncherLeaf);
  SOMA_TRY(MakeDirectory(leaf));
  // Our parent, the launcher's other half, lives there too.
  SOMA_TRY(WriteFile(leaf + "/cgroup.procs", StrCat(getppid())));
  SOMA_TRY(WriteFile(leaf + "/cgroup.procs", "0"));
  return WriteFile(file, controllers);
}

Status PrepareV2(Hierarchy& hierarchy) {
  auto available = sys::ReadWholeFile(hierarchy.directory + "/cgroup.controllers", kFileBytesMax);
  if (!available) return {};
  const auto words =
      Split(Trim(std::string_view(*available).substr(0, available->find('\n'))), ' ');
  hierarchy.memory = Contains(words, "memory");
  hierarchy.pids = Contains(words, "pids");
  hierarchy.cpu = Contains(words, "cpu");
  std::string controllers;
  if (hierarchy.memory) controllers += "+memory ";
  if (hierarchy.pids) controllers += "+pids ";
  if (hierarchy.cpu) controllers += "+cpu ";
  if (controllers.empty()) return {};
  return HandDown(hierarchy.directory, controllers);
}

Status SetV1Limits(const Hierarchy& place, const control::Limits& limits) {
  if (place.memory) {
    const std::string bytes = StrCat(limits.memory_bytes);
    SOMA_TRY(WriteFile(place.directory + "/memory.limit_in_bytes", bytes));
    // Absent where swap isn't accounted.
    (void)WriteFile(place.directory + "/memory.memsw.limit_in_bytes", bytes);
  }
  if (place.pids) SOMA_TRY(WriteFile(place.directory + "/pids.max", StrCat(limits.pids)));
  if (place.cpu) {
    SOMA_TRY(WriteFile(place.directory + "/cpu.cfs_quota_us",
                       StrCat(kCpuPeriodMicros * limits.cpu_millis / 1000)));
  }
  return {};
}

Status SetV2Limits(const Hierarchy& place, const control::Limits& limits) {
  if (place.memory) {
    SOMA_TRY(WriteFile(place.directory + "/memory.max", StrCat(limits.memory_bytes)));
    (void)WriteFile(place.directory + "/memory.swap.max", "0");
  }
  if (place.pids) SOMA_TRY(WriteFile(place.directory + "/pids.max", StrCat(limits.pids)));
  if (place.cpu) {
    SOMA_TRY(WriteFile(place.directory + "/cpu.max",
                       StrCat(kCpuPeriodMicros * limits.cpu_millis / 1000, " ", kCpuPeriodMicros)));
  }
  return {};
}

// For kernels without cgroup.kill (before 5.14) and for v1: one round over the list of processes.
// The caller comes again while Remove says that some are left.
void KillListed(const std::string& directory) {
  auto processes = sys::ReadWholeFile(directory + "/cgroup.procs", kFileBytesMax);
  if (!processes) return;
  for (const std::string_view line : Split(*processes, '\n')) {
    const auto pid = ParseInt<pid_t>(line);
    if (pid && *pid > 1) kill(*pid, SIGKILL);
  }
}

}  // namespace

Status SlotCgroup::Enter(pid_t pid) const {
  for (const Hierarchy& place : places_) {
    SOMA_TRY(WriteFile(place.directory + "/cgroup.procs", StrCat(pid)));
  }
  return {};
}

Status SlotCgroup::SetLimits(const control::Limits& limits) const {
  for (const Hierarchy& place : places_) {
    SOMA_TRY(place.version == CgroupVersion::kV1 ? SetV1Limits(place, limits)
                                                 : SetV2Limits(place, limits));
  }
  return {};
}

Status SlotCgroup::Freeze() const {
  for (const Hierarchy& place : places_) {
    if (place.version != CgroupVersion::kV2) continue;
    SOMA_TRY(WriteFile(place.directory + "/cgroup.freeze", "1"));
    constexpr int kTriesMax = 100;
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1'000'000};
    for (int i = 0; i < kTriesMax; ++i) {
      auto events = sys::ReadWholeFile(place.directory + "/cgroup.events", kFileBytesMax);
      if (events && events->contains("frozen 1")) return {};
      nanosleep(&kPause, nullptr);
    }
    return Fail(Errc::kDeadlineExceeded, "a process does not freeze");
  }
  return Fail(Errc::kUnimplemented, "this machine has no cgroup v2 hierarchy to freeze by");
}

Status SlotCgroup::Thaw() const {
  for (const Hierarchy& place : places_) {
    if (place.version != CgroupVersion::kV2) continue;
    return WriteFile(place.directory + "/cgroup.freeze", "0");
  }
  return Fail(Errc::kUnimplemented, "this machine has no cgroup v2 hierarchy to freeze by");
}

void SlotCgroup::Kill() const {
  for (const Hierarchy& place : places_) {
    if (place.version == CgroupVersion::kV2 &&
        WriteFile(place.directory + "/cgroup.kill", "1").has_value()) {
      continue;
    }
    KillListed(place.directory);
  }
}

sys::CgroupHits SlotCgroup::Hits() const {
  sys::CgroupHits hits;
  for (const Hierarchy& place : places_) {
    const sys::CgroupHits one = sys::ReadCgroupHits(place.directory);
    hits.out_of_memory_kills += one.out_of_memory_kills;
    hits.refused_forks += one.refused_forks;
  }
  return hits;
}

bool SlotCgroup::Remove() const {
  bool gone = true;
  for (const Hierarchy& place : places_) {
    if (rmdir(place.directory.c_str()) < 0 && errno != ENOENT) gone = false;
  }
  return gone;
}

Result<CgroupTree> CgroupTree::Create(std::string_view name) {
  SOMA_ASSIGN(const std::string mounts, sys::ReadWholeFile("/proc/self/mountinfo", kFileBytesMax));
  SOMA_ASSIGN(const std::string own, sys::ReadWholeFile("/proc/self/cgroup", kFileBytesMax));
  std::vector<Hierarchy> hierarchies = FindHierarchies(mounts, own);
  bool memory = false;
  bool pids = false;
  bool cpu = false;
  for (Hierarchy& hierarchy : hierarchies) {
    const bool v2 = hierarchy.version == CgroupVersion::kV2;
    if (v2) SOMA_TRY_WHILE(PrepareV2(hierarchy), "preparing cgroup v2");
    hierarchy.directory += StrCat("/", name);
    SOMA_TRY(MakeDirectory(hierarchy.directory));
    if (v2) SOMA_TRY_WHILE(PrepareV2(hierarchy), "preparing cgroup v2");
    SOMA_TRY(MakeDirectory(StrCat(hierarchy.directory, "/", kHome)));
    memory = memory || hierarchy.memory;
    pids = pids || hierarchy.pids;
    cpu = cpu || hierarchy.cpu;
  }
  if (!memory || !pids || !cpu) {
    return Fail(Errc::kUnimplemented,
                "the cgroup controllers memory, pids and cpu are not all available");
  }
  return CgroupTree(std::move(hierarchies));
}

SlotCgroup CgroupTree::SlotAt(std::uint32_t slot) const {
  std::vector<Hierarchy> places = hierarchies_;
  for (Hierarchy& place : places) place.directory += StrCat("/", SlotName(slot));
  return SlotCgroup(std::move(places));
}

Result<SlotCgroup> CgroupTree::MakeSlot(std::uint32_t slot) const {
  for (const Hierarchy& hierarchy : hierarchies_) {
    SOMA_TRY(MakeDirectory(StrCat(hierarchy.directory, "/", SlotName(slot))));
  }
  return SlotAt(slot);
}

std::vector<std::uint32_t> CgroupTree::Existing() const {
  std::vector<std::uint32_t> slots;
  for (const Hierarchy& hierarchy : hierarchies_) {
    DIR* directory = opendir(hierarchy.directory.c_str());
    if (directory == nullptr) continue;
    while (const dirent* entry = readdir(directory)) {
      std::string_view entry_name(entry->d_name);
      if (!entry_name.starts_with("slot-")) continue;
      entry_name.remove_prefix(std::string_view("slot-").size());
      const auto slot = ParseInt<std::uint32_t>(entry_name);
      if (slot && !Contains(slots, *slot)) slots.push_back(*slot);
    }
    closedir(directory);
  }
  return slots;
}

Status CgroupTree::MoveHome(pid_t pid) const {
  for (const Hierarchy& hierarchy : hierarchies_) {
    SOMA_TRY(WriteFile(StrCat(hierarchy.directory, "/", kHome, "/cgroup.procs"), StrCat(pid)));
  }
  return {};
}

void CgroupTree::RemoveAll() const {
  for (const Hierarchy& hierarchy : hierarchies_) {
    rmdir(StrCat(hierarchy.directory, "/", kHome).c_str());
    rmdir(hierarchy.directory.c_str());
  }
}

}  // namespace soma::launcher
