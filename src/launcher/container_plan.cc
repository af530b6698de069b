// SPDX-License-Identifier: Apache-2.0
#include "launcher/container_plan.h"

#include <linux/capability.h>
#include <sys/resource.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "control/messages.h"
#include "launcher/ids.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::launcher {
namespace {

using walls::MountItem;
using walls::MountKind;
using walls::WallPlan;

constexpr std::uint32_t kWireInside = 3;  // where soma-guest looks for it

std::uint64_t Set(std::initializer_list<unsigned> capabilities) {
  std::uint64_t set = 0;
  for (const unsigned capability : capabilities) set |= std::uint64_t{1} << capability;
  return set;
}

// What sudo, apt and services need inside (design.md, task profile `rooted`); none of it reaches
// beyond the sandbox's own users, files and processes.
std::uint64_t RootedCapabilities() {
  return Set({CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID,
              CAP_SETPCAP, CAP_SETFCAP, CAP_KILL, CAP_SYS_CHROOT, CAP_NET_BIND_SERVICE,
              CAP_NET_RAW});
}

// What the agent itself needs to start tasks as other users and to keep their files.
std::uint64_t AgentCapabilities() {
  return Set(
      {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_SETUID, CAP_SETGID, CAP_SETPCAP, CAP_KILL});
}

MountItem Tmpfs(std::string target, std::uint64_t bytes, std::uint32_t mode) {
  MountItem item;
  item.kind = MountKind::kTmpfs;
  item.target = std::move(target);
  item.size_bytes_max = bytes;
  item.inodes_max = bytes / 4096;
  item.mode = mode;
  return item;
}

MountItem Simple(MountKind kind, std::string target) {
  MountItem item;
  item.kind = kind;
  item.target = std::move(target);
  return item;
}

// Host-wide files of /proc that an id of ours can't write, but should not read either.
void HideProc(std::vector<MountItem>& mounts) {
  for (const char* path :
       {"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug",
        "/proc/kallsyms", "/proc/sysrq-trigger", "/proc/latency_stats", "/proc/acpi", "/proc/scsi",
        "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup"}) {
    MountItem item = Simple(MountKind::kHide, path);
    item.optional = true;
    mounts.push_back(std::move(item));
  }
}

std::vector<MountItem> Mounts(MountItem root) {
  std::vector<MountItem> mounts;
  mounts.push_back(std::move(root));
  mounts.push_back(Simple(MountKind::kProc, "/proc"));
  HideProc(mounts);
  mounts.push_back(Simple(MountKind::kDevices, "/dev"));
  // The real one belongs to the network namespace, which root inside does not own.
  constexpr std::uint64_t kAlmostNothing = 64UL * 1024;
  MountItem sys = Tmpfs("/sys", kAlmostNothing, 0555);
  sys.read_only = true;
  mounts.push_back(std::move(sys));
  return mounts;
}

// What both regimes have in common: who runs, with which descriptors, in which namespaces.
WallPlan AgentPlan(std::string_view host_name) {
  WallPlan plan;
  plan.namespaces = walls::Namespaces::kAll;
  plan.init = false;
  plan.host_name = host_name;
  plan.network = walls::NetworkKind::kCapture;
  plan.keep_capabilities = true;
  plan.seccomp.enabled = true;
  // The monitor, which launches, sits in the sandbox's cgroup already: nothing migrates here.
  plan.cgroup.mode = walls::CgroupMode::kNone;
  plan.limits = {{.resource = RLIMIT_CORE, .value = 0}};
  plan.descriptors = {{.slot = kNullSlot, .inside = 0},
                      {.slot = kNullSlot, .inside = 1},
                      {.slot = kNullSlot, .inside = 2},
                      {.slot = kWireSlot, .inside = kWireInside}};
  plan.execute_slot = kGuestSlot;
  plan.arguments = {"soma-guest", "--wire=socket"};
  plan.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  return plan;
}

}  // namespace

WallPlan ContainerPlan(const SlotIds& ids, control::TaskProfile profile,
                       const control::Limits& limits, std::string_view host_name) {
  const bool rooted = profile == control::TaskProfile::kRooted;
  WallPlan plan = AgentPlan(host_name);
  const std::vector<walls::IdRange> outer = {
      {.inside = 0, .outside = ids.outer_root, .count = 1},
      {.inside = 1, .outside = ids.first, .count = kRangeSize}};
  const std::vector<walls::IdRange> inner = {{.inside = 0, .outside = 1, .count = kRangeSize}};
  plan.user_namespaces = {{.uids = outer, .gids = outer}, {.uids = inner, .gids = inner}};
  MountItem root = Simple(MountKind::kBind, "/");
  root.slot = kRootSlot;
  root.allow_suid = rooted;
  plan.mounts = Mounts(std::move(root));
  plan.capability_bounding = rooted ? RootedCapabilities() : AgentCapabilities();
  plan.no_new_privs = !rooted;
  plan.seccomp.profile = rooted ? walls::SeccompProfile::kRooted : walls::SeccompProfile::kStrict;
  plan.notes = {
      StrCat("limits: cgroup, memory ", limits.memory_bytes, ", processes ", limits.pids, ", CPU ",
             limits.cpu_millis, "/1000"),
      StrCat("disk: own file system, ", limits.disk_bytes, " bytes, ", limits.inodes, " inodes")};
  return plan;
}

WallPlan RootlessPlan(const RootlessPlace& place, const control::Limits& limits,
                      std::string_view host_name) {
  WallPlan plan = AgentPlan(host_name);
  plan.user_namespaces = {{.uids = {{.inside = 0, .outside = place.uid, .count = 1}},
                           .gids = {{.inside = 0, .outside = place.gid, .count = 1}}}};
  MountItem root = Simple(MountKind::kOverlay, "/");
  root.lowers = {place.template_tree};
  root.upper = place.upper;
  root.work = place.work;
  root.volatile_upper = true;
  plan.mounts = Mounts(std::move(root));
  plan.capability_bounding = AgentCapabilities();
  plan.seccomp.profile = walls::SeccompProfile::kStrict;
  plan.limits.push_back({.resource = RLIMIT_NPROC, .value = limits.pids});
  plan.limits.push_back({.resource = RLIMIT_FSIZE, .value = limits.disk_bytes});
  plan.limits.push_back({.resource = RLIMIT_DATA, .value = limits.memory_bytes});
  plan.notes = {"limits: rlimit, each process for itself (an ordinary user has no cgroup)",
                "disk: a plain directory without quota; one file is at most as large as the limit",
                "users: one id, root inside is the caller outside"};
  return plan;
}

}  // namespace soma::launcher
