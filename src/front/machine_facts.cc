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

#include "base/result.h"
#include "base/text.h"
#include "plan/level_choice.h"
#include "plan/task_plan.h"
#include "probe/report.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/seccomp_profile.h"
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

// Whether walls like these can be built here: they are, around a command that isn't started.
Status Try(const walls::WallPlan& plan) {
  SOMA_ASSIGN(const walls::RunningTask task, walls::Launch(plan, {}));
  return {};
}

// ENOSPC is not among these: it is how a forbidden user namespace answers (user_namespaces(7)).
bool IsShortage(const Status& tried) {
  if (tried) return false;
  const int why = tried.error().errno_value();
  return why == EMFILE || why == ENFILE || why == ENOMEM || why == EAGAIN;
}

walls::WallPlan SmallTask(const walls::RunIdentity& identity) {
  walls::WallPlan plan;
  plan.init = false;
  plan.uid = identity.outside_uid;
  plan.gid = identity.outside_gid;
  plan.arguments = {"/nonexistent"};
  return plan;
}

// Every namespace, and the mounts that containers around us most often refuse.
walls::WallPlan NamespacesOnly(const walls::RunIdentity& identity) {
  walls::WallPlan plan = SmallTask(identity);
  plan.uid = identity.uid;
  plan.gid = identity.gid;
  plan.user_namespaces = {{.uids = {{identity.uid, identity.outside_uid, 1}},
                           .gids = {{identity.gid, identity.outside_gid, 1}}}};
  plan.namespaces = walls::Namespaces::kAll;
  plan.network = walls::NetworkKind::kLoopback;
  plan.mounts = {{.kind = walls::MountKind::kTmpfs, .target = "/"},
                 {.kind = walls::MountKind::kProc, .target = "/proc"},
                 {.kind = walls::MountKind::kDevices, .target = "/dev"}};
  return plan;
}

walls::WallPlan ListenerOnly(const walls::RunIdentity& identity) {
  walls::WallPlan plan = SmallTask(identity);
  plan.init = true;  // whoever hands out a listener can't wait for it
  plan.seccomp = {.enabled = true, .notify = walls::SeccompNotify::kMutating};
  return plan;
}

plan::LevelProof ProofOf(const probe::Row& row) {
  return {.proven = row.finding == probe::Finding::kProven, .figure = row.evidence};
}

}  // namespace

plan::Machine LookAtMachine() {
  plan::Machine machine;
  machine.cgroup_writable = MayLimitByCgroup();
  machine.landlock_abi = sys::LandlockAbi();
  return machine;
}

Status LookClosely(plan::Machine& machine, const walls::RunIdentity& identity) {
  const Status namespaces = Try(NamespacesOnly(identity));
  if (IsShortage(namespaces)) return namespaces;
  machine.namespaces = namespaces.has_value();
  machine.namespaces_lack = namespaces ? std::string() : namespaces.error().message();
  const Status listener = Try(ListenerOnly(identity));
  if (IsShortage(listener)) return listener;
  machine.may_notify = listener.has_value();
  return {};
}

plan::MachineLevels ProveLevels() {
  plan::MachineLevels levels;
  levels.gvisor.figure = "soma cannot drive runsc yet";
  levels.microvm = ProofOf(probe::ProbeKvm());
  levels.confidential.figure = "soma cannot drive SEV-SNP or TDX yet";
  return levels;
}

}  // namespace soma::front
