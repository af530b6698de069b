// SPDX-License-Identifier: Apache-2.0
#include "walls/task_cgroups.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {
namespace {

constexpr std::uint64_t kPeriodUs =
    100'000;  // the kernel's default for cpu.max and cpu.cfs_period_us

std::string ReadWhole(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; file && (size = ::read(file.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

Status WriteFile(const std::string& directory, std::string_view name, std::string_view text) {
  const std::string path = StrCat(directory, "/", name);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
    return std::unexpected(Error::FromErrno(errno, path));
  }
  return {};
}

bool HasAll(std::string_view controllers, const CgroupPlan& plan) {
  const auto names = Split(controllers.substr(0, controllers.find('\n')), ' ');
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  return (plan.memory_bytes_max == 0 || has("memory")) && (plan.pids_max == 0 || has("pids")) &&
         (plan.cpu_percent_max == 0 || has("cpu"));
}

Status LimitUnified(const std::string& directory, const CgroupPlan& plan) {
  if (plan.memory_bytes_max != 0) {
    SOMA_TRY(WriteFile(directory, "memory.max", StrCat(plan.memory_bytes_max)));
    // Not there without swap accounting; killing the whole task at once is a courtesy.
    (void)WriteFile(directory, "memory.swap.max", "0");
    (void)WriteFile(directory, "memory.oom.group", "1");
  }
  if (plan.pids_max != 0) SOMA_TRY(WriteFile(directory, "pids.max", StrCat(plan.pids_max)));
  if (plan.cpu_percent_max != 0) {
    SOMA_TRY(WriteFile(directory, "cpu.max",
                       StrCat(plan.cpu_percent_max * kPeriodUs / 100, " ", kPeriodUs)));
  }
  return {};
}

Status LimitVersion1(const std::string& directory, std::string_view controller,
                     const CgroupPlan& plan) {
  if (controller == "memory") {
    SOMA_TRY(WriteFile(directory, "memory.limit_in_bytes", StrCat(plan.memory_bytes_max)));
    (void)WriteFile(directory, "memory.memsw.limit_in_bytes", StrCat(plan.memory_bytes_max));
    return {};
  }
  if (controller == "pids") return WriteFile(directory, "pids.max", StrCat(plan.pids_max));
  SOMA_TRY(WriteFile(directory, "cpu.cfs_period_us", StrCat(kPeriodUs)));
  return WriteFile(directory, "cpu.cfs_quota_us", StrCat(plan.cpu_percent_max * kPeriodUs / 100));
}

// A hierarchy that is mounted from its root.
struct CgroupMount {
  bool unified = false;
  std::string_view point;
  std::vector<std::string_view> options;  // the controllers are among them
};

std::vector<CgroupMount> CgroupMounts(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string_view mount : Split(mountinfo, '\n')) {
    // "… root mount-point options … - type source super-options" (proc_pid_mountinfo(5))
    const auto dash = mount.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    const auto fields = Split(mount.substr(0, dash), ' ');
    const auto tail = Split(mount.substr(dash + 3), ' ');
    if (fields.size() < 5 || fields[3] != "/" || tail.size() < 3) continue;
    mounts.push_back(
        {.unified = tail[0] == "cgroup2", .point = fields[4], .options = Split(tail[2], ',')});
  }
  return mounts;
}

// Where the hierarchy of `place` is mounted from its root; empty if it isn't.
std::string_view MountPointOf(const CgroupPlace& place, const std::vector<CgroupMount>& mounts) {
  for (const CgroupMount& mount : mounts) {
    if (mount.unified != place.unified) continue;
    if (place.unified ||
        std::ranges::find(mount.options, place.controllers.front()) != mount.options.end()) {
      return mount.point;
    }
  }
  return {};
}

// Beside the launcher's own directory first: the kernel hands no controllers to one that holds
// processes.
std::vector<std::string> UnifiedBases(const CgroupPlace& place) {
  if (place.at_root)
    return {place.directory};  // which is free of that rule, and has nothing beside it
  return {place.directory.substr(0, place.directory.rfind('/')), place.directory};
}

std::vector<std::string> BasesOf(const std::vector<CgroupPlace>& places) {
  std::vector<std::string> all;
  for (const CgroupPlace& place : places) {
    const auto bases = place.unified ? UnifiedBases(place) : std::vector{place.directory};
    all.insert(all.end(), bases.begin(), bases.end());
  }
  return all;
}

std::vector<CgroupPlace> OwnPlaces() {
  return ParseCgroupPlaces(ReadWhole("/proc/self/cgroup"), ReadWhole("/proc/self/mountinfo"));
}

// Waits until the launcher's end of the pipe is closed, then removes the directories as soon as the
// last process has left them. Allocates nothing.
[[noreturn]] void Keep(int pipe, const std::vector<std::string>& directories) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  (void)::setsid();
  (void)::prctl(PR_SET_NAME, "soma-keeper", 0, 0, 0);
  // Only the pipe: nothing that somebody else waits for may stay open here.
  (void)::dup2(pipe, 0);
  (void)sys::CloseFrom(1);
  char ignored = 0;
  while (::read(0, &ignored, 1) < 0 && errno == EINTR) {
  }
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};
  constexpr int kTriesMax = 500;
  for (int i = 0; i < kTriesMax; ++i) {
    bool all_gone = true;
    for (const std::string& directory : directories) {
      all_gone &= ::rmdir(directory.c_str()) == 0 || errno == ENOENT;
    }
    if (all_gone) break;
    (void)::nanosleep(&kPause, nullptr);
  }
  ::_exit(0);
}

}  // namespace

std::vector<CgroupPlace> ParseCgroupPlaces(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<CgroupPlace> places;
  const std::vector<CgroupMount> mounts = CgroupMounts(mountinfo);
  for (const std::string_view line : Split(cgroup, '\n')) {
    const auto parts = Split(line, ':');  // hierarchy, controllers, path (cgroups(7))
    if (parts.size() < 3) continue;
    CgroupPlace place{.unified = parts[0] == "0", .controllers = {}, .directory = {}};
    if (!place.unified) {
      for (const std::string_view name : Split(parts[1], ',')) place.controllers.emplace_back(name);
    }
    const std::string_view path = line.substr(parts[0].size() + parts[1].size() + 2);
    place.at_root = path == "/";
    const std::string_view mount = MountPointOf(place, mounts);
    if (mount.empty()) continue;
    place.directory = place.at_root ? std::string(mount) : StrCat(mount, path);
    places.push_back(std::move(place));
  }
  return places;
}

std::vector<std::string> TaskCgroupBases() { return BasesOf(OwnPlaces()); }

Status TaskCgroups::Prepare(const CgroupPlan& plan, const LaunchOptions& options) {
  if (plan.mode == CgroupMode::kNone) return {};
  if (plan.mode == CgroupMode::kJoin) return Join(plan, options);
  auto made = Create(plan);
  if (!made) Remove();
  return made;
}

Status TaskCgroups::Create(const CgroupPlan& plan) {
  const auto places = OwnPlaces();
  // Before the first directory is there: from then on the launcher may be killed at any moment.
  SOMA_TRY(StartKeeper(plan, places));
  Status unified = Fail(Errc::kUnimplemented, "there is no unified hierarchy");
  for (const CgroupPlace& place : places) {
    if (place.unified) unified = CreateUnified(plan, place);
  }
  if (unified) return unified;
  auto version1 = CreateVersion1(plan, places);
  if (version1 || version1.error().code() != Errc::kNotFound) return version1;
  return unified;
}

Status TaskCgroups::CreateUnified(const CgroupPlan& plan, const CgroupPlace& place) {
  Status last;
  for (const std::string& base : UnifiedBases(place)) {
    const std::string directory = StrCat(base, "/", plan.name);
    if (::mkdir(directory.c_str(), 0755) != 0) {
      last = std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", directory)));
      continue;
    }
    directories_.push_back(directory);
    const std::string controllers = ReadWhole(StrCat(directory, "/cgroup.controllers").c_str());
    if (HasAll(controllers, plan)) {
      SOMA_TRY(LimitUnified(directory, plan));
      clone_into_ = Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      return {};
    }
    ::rmdir(directory.c_str());
    directories_.clear();
    last = Fail(Errc::kUnimplemented, StrCat(base, ": a wanted controller isn't handed down"));
  }
  return last;
}

Status TaskCgroups::CreateVersion1(const CgroupPlan& plan, const std::vector<CgroupPlace>& places) {
  const std::pair<std::string_view, bool> wanted[] = {{"memory", plan.memory_bytes_max != 0},
                                                      {"pids", plan.pids_max != 0},
                                                      {"cpu", plan.cpu_percent_max != 0}};
  for (const auto& [controller, wish] : wanted) {
    if (!wish) continue;
    const auto place = std::ranges::find_if(places, [&](const CgroupPlace& one) {
      return std::ranges::find(one.controllers, controller) != one.controllers.end();
    });
    if (place == places.end()) {
      return Fail(Errc::kNotFound, StrCat("no cgroup hierarchy controls ", controller));
    }
    const std::string directory = StrCat(place->directory, "/", plan.name);
    const bool made_before = std::ranges::find(directories_, directory) != directories_.end();
    if (!made_before && ::mkdir(directory.c_str(), 0755) != 0) {
      return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", directory)));
    }
    if (!made_before) {
      directories_.push_back(directory);
      attach_.emplace_back(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    SOMA_TRY(LimitVersion1(directory, controller, plan));
  }
  return {};
}

Status TaskCgroups::Join(const CgroupPlan& plan, const LaunchOptions& options) {
  for (const std::uint32_t slot : plan.slots) {
    if (slot >= options.descriptors.size()) {
      return Fail(Errc::kInvalidArgument, StrCat("slot ", slot, ": no descriptor was handed in"));
    }
    Fd directory(::fcntl(options.descriptors[slot], F_DUPFD_CLOEXEC, 0));
    if (!directory) return std::unexpected(Error::FromErrno(errno, "cgroup slot"));
    // Only version 2 has this file.
    if (::faccessat(directory.get(), "cgroup.controllers", F_OK, 0) == 0) {
      clone_into_ = std::move(directory);
    } else {
      attach_.push_back(std::move(directory));
    }
  }
  return {};
}

Status TaskCgroups::StartKeeper(const CgroupPlan& plan, const std::vector<CgroupPlace>& places) {
  std::vector<std::string> candidates;
  for (const std::string& base : BasesOf(places)) {
    candidates.push_back(StrCat(base, "/", plan.name));
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(Error::FromErrno(errno, "pipe"));
  const Fd read_end(ends[0]);
  keeper_pipe_ = Fd(ends[1]);
  const sys::CloneResult clone = sys::Clone(0);
  if (clone.pid == 0) Keep(read_end.get(), candidates);
  if (clone.pid < 0) return std::unexpected(Error::FromErrno(clone.error, "clone the keeper"));
  keeper_ = sys::Process(clone.pid, Fd(clone.pidfd));
  return {};
}

Status TaskCgroups::Attach(pid_t pid) {
  for (const Fd& directory : attach_) {
    const Fd file(::openat(directory.get(), "cgroup.procs", O_WRONLY | O_CLOEXEC));
    const std::string text = StrCat(pid);
    if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
      return std::unexpected(Error::FromErrno(errno, "cgroup.procs"));
    }
  }
  return {};
}

void TaskCgroups::Remove() {
  for (const std::string& directory : directories_) ::rmdir(directory.c_str());
  directories_.clear();
  keeper_pipe_.Reset();
  if (keeper_) (void)keeper_->Wait();
  keeper_.reset();
}

}  // namespace soma::walls
