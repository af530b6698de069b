// SPDX-License-Identifier: Apache-2.0
// Limits, tried on a process of our own in a cgroup of our own.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "probe/cgroup_tree.h"
#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/process.h"

namespace soma::probe {
namespace {

constexpr std::string_view kRemedy =
    "as root, or with a delegated cgroup v2 (systemd-run --user --scope -p Delegate=yes); without "
    "it the limits are "
    "those of setrlimit, and the report says so";
constexpr std::size_t kHogBytes = std::size_t{64} << 20;
constexpr std::string_view kMemoryLimit = "16777216";
constexpr int kAttachTimes =
    100;  // a v1 attach may wait for an RCU grace period, 23 ms at most measured

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::optional<CgroupPlace> Find(std::string_view controller) {
  return FindCgroup(ReadAll("/proc/self/mountinfo"), ReadAll("/proc/self/cgroup"), controller);
}

// A cgroup below our own that is removed at the end (its process has been reaped then).
class TrialCgroup {
 public:
  explicit TrialCgroup(const CgroupPlace& place)
      : directory_(StrCat(place.directory, "/soma-probe-", ::getpid())) {
    error_ = ::mkdir(directory_.c_str(), 0755) == 0 ? 0 : errno;
  }
  ~TrialCgroup() {
    for (int i = 0;
         error_ == 0 && i < kAttachTimes && ::rmdir(directory_.c_str()) != 0 && errno == EBUSY;
         ++i) {
      ::usleep(10'000);
    }
  }
  TrialCgroup(const TrialCgroup&) = delete;
  TrialCgroup& operator=(const TrialCgroup&) = delete;
  int error() const { return error_; }
  int Write(std::string_view file, std::string_view text) const {
    return WriteText(StrCat(directory_, '/', file), text);
  }

 private:
  std::string directory_;
  int error_ = 0;
};

// Runs `inside` in a process that has joined `cgroup`; its wait status, or nothing when it couldn't
// join.
std::optional<int> RunIn(const TrialCgroup& cgroup, const std::function<int()>& inside) {
  constexpr int kNotJoined = 77;
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid == 0) {
    sys::DieWithParent(SIGKILL);
    ::_exit(cgroup.Write("cgroup.procs", "0") == 0 ? inside() : kNotJoined);
  }
  const Fd pidfd(child.pidfd);
  int status = 0;
  if (child.pid < 0 || ::waitpid(child.pid, &status, 0) < 0) return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotJoined) return std::nullopt;
  return status;
}

Answer TryKill() {
  const auto place = Find("");
  if (!place) return Missing("no cgroup v2 hierarchy is mounted", 0);
  const TrialCgroup cgroup(*place);
  if (cgroup.error() != 0) return Missing(StrCat("mkdir below ", place->directory), cgroup.error());
  if (const int error = cgroup.Write("cgroup.freeze", "1"); error != 0)
    return Missing("cgroup.freeze", error);
  if (const int error = cgroup.Write("cgroup.freeze", "0"); error != 0)
    return Missing("cgroup.freeze", error);
  const auto status = RunIn(cgroup, [&] {
    cgroup.Write("cgroup.kill", "1");
    return 0;
  });
  if (!status) return Missing("join", 0);
  if (!WIFSIGNALED(*status) || WTERMSIG(*status) != SIGKILL)
    return Leaks("a member outlived cgroup.kill");
  return Proven("a process in an own cgroup was ended by cgroup.kill");
}

Answer TryPids() {
  const auto place = Find("pids");
  if (!place) return Missing("no pids controller", 0);
  const TrialCgroup cgroup(*place);
  if (cgroup.error() != 0) return Missing(StrCat("mkdir below ", place->directory), cgroup.error());
  if (const int error = cgroup.Write("pids.max", "1"); error != 0)
    return Missing("pids.max", error);
  const auto status = RunIn(cgroup, [] {
    const sys::CloneResult child = sys::Clone(0);
    if (child.pid == 0) ::_exit(0);
    return child.pid < 0 && child.error == EAGAIN ? 0 : 1;
  });
  if (!status) return Missing("join", 0);
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return Leaks("a second process was started at pids.max 1");
  return Proven(place->v2 ? "v2: a fork beyond the limit was refused"
                          : "v1: a fork beyond the limit was refused");
}

Answer TryMemory() {
  const auto place = Find("memory");
  if (!place) return Missing("no memory controller", 0);
  const TrialCgroup cgroup(*place);
  if (cgroup.error() != 0) return Missing(StrCat("mkdir below ", place->directory), cgroup.error());
  const char* limit = place->v2 ? "memory.max" : "memory.limit_in_bytes";
  if (const int error = cgroup.Write(limit, kMemoryLimit); error != 0) return Missing(limit, error);
  // Swap would let the hog live; where swap isn't accounted this file doesn't exist.
  cgroup.Write(place->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
               place->v2 ? "0" : kMemoryLimit);
  const auto status = RunIn(cgroup, [] {
    void* hog =
        ::mmap(nullptr, kHogBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (hog == MAP_FAILED) return 2;
    std::memset(hog, 1, kHogBytes);
    return static_cast<int>(static_cast<const volatile char*>(hog)[kHogBytes - 1]) - 1;
  });
  if (!status) return Missing("join", 0);
  if (!WIFSIGNALED(*status)) return Leaks("64 MiB were used under a limit of 16 MiB");
  return Proven(place->v2 ? "v2: a process beyond 16 MiB was ended"
                          : "v1: a process beyond 16 MiB was ended");
}

}  // namespace

Row ProbeCgroupKill() { return MakeRow(Feature::kCgroupKill, Try(TryKill), kRemedy); }
Row ProbeCgroupPids() { return MakeRow(Feature::kCgroupPids, Try(TryPids), kRemedy); }
Row ProbeCgroupMemory() { return MakeRow(Feature::kCgroupMemory, Try(TryMemory), kRemedy); }

}  // namespace soma::probe
