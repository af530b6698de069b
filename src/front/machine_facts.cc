// SPDX-License-Identifier: Apache-2.0
#include "front/machine_facts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "plan/level_choice.h"
#include "plan/task_plan.h"
#include "probe/report.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "walls/task_cgroups.h"

namespace soma::front {

namespace {

// Of /proc and cgroup files, which have no size. Empty when it can't be read.
std::string ReadWhole(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!fd) return text;
  constexpr std::size_t kBlock = std::size_t{16} << 10;
  for (;;) {
    const std::size_t used = text.size();
    text.resize(used + kBlock);
    const ssize_t got = read(fd.get(), text.data() + used, kBlock);
    if (got < 0 && errno == EINTR) {
      text.resize(used);
      continue;
    }
    text.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) return text;
  }
}

bool MayWrite(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

bool HasController(const std::vector<std::string>& controllers, std::string_view name) {
  return std::ranges::find(controllers, name) != controllers.end();
}

// Version 2: a sibling of our own cgroup, with the controllers that its parent gives.
bool MayLimitBeside(const std::string& own) {
  const std::string parent = own.substr(0, own.rfind('/'));
  if (!MayWrite(parent) || !MayWrite(parent + "/cgroup.procs")) return false;
  const std::string given = ReadWhole(parent + "/cgroup.subtree_control");
  std::vector<std::string> controllers;
  for (const std::string_view word : Split(Trim(given.substr(0, given.find('\n'))), ' ')) {
    controllers.emplace_back(word);
  }
  return HasController(controllers, "memory") && HasController(controllers, "pids");
}

// Whether a run can have cgroups of its own that count memory and processes, at either version.
bool MayLimitByCgroup() {
  bool memory = false;
  bool pids = false;
  bool beside = false;
  for (const walls::CgroupPlace& place : walls::ParseCgroupPlaces(
           ReadWhole("/proc/self/cgroup"), ReadWhole("/proc/self/mountinfo"))) {
    const bool counts_memory = HasController(place.controllers, "memory");
    const bool counts_pids = HasController(place.controllers, "pids");
    if (place.unified) {
      beside = MayLimitBeside(place.directory);
    } else if ((counts_memory || counts_pids) && MayWrite(place.directory)) {
      memory = memory || counts_memory;
      pids = pids || counts_pids;
    }
  }
  return beside || (memory && pids);
}

plan::LevelProof ProofOf(const probe::Row& row) {
  return {.proven = row.finding == probe::Finding::kProven, .figure = row.evidence};
}

}  // namespace

plan::Machine LookAtMachine() {
  return {.cgroup_writable = MayLimitByCgroup(),
          .landlock_abi = sys::LandlockAbi(),
          .may_notify = true};
}

plan::MachineLevels ProveLevels() {
  plan::MachineLevels levels;
  levels.gvisor.figure = "soma cannot drive runsc yet";
  levels.microvm = ProofOf(probe::ProbeKvm());
  levels.confidential.figure = "soma cannot drive SEV-SNP or TDX yet";
  return levels;
}

}  // namespace soma::front
