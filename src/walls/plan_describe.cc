// SPDX-License-Identifier: Apache-2.0
// Describe: a WallPlan as lines for people, --explain and tests.
#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

constexpr std::array<std::pair<Namespaces, std::string_view>, 6> kNamespaceNames = {{
    {Namespaces::kMount, "mount"},
    {Namespaces::kPid, "pid"},
    {Namespaces::kNetwork, "network"},
    {Namespaces::kIpc, "ipc"},
    {Namespaces::kUts, "uts"},
    {Namespaces::kCgroup, "cgroup"},
}};

// In the order of linux/capability.h; later ones are printed as numbers.
constexpr std::array<std::string_view, 41> kCapabilityNames = {"chown",
                                                               "dac_override",
                                                               "dac_read_search",
                                                               "fowner",
                                                               "fsetid",
                                                               "kill",
                                                               "setgid",
                                                               "setuid",
                                                               "setpcap",
                                                               "linux_immutable",
                                                               "net_bind_service",
                                                               "net_broadcast",
                                                               "net_admin",
                                                               "net_raw",
                                                               "ipc_lock",
                                                               "ipc_owner",
                                                               "sys_module",
                                                               "sys_rawio",
                                                               "sys_chroot",
                                                               "sys_ptrace",
                                                               "sys_pacct",
                                                               "sys_admin",
                                                               "sys_boot",
                                                               "sys_nice",
                                                               "sys_resource",
                                                               "sys_time",
                                                               "sys_tty_config",
                                                               "mknod",
                                                               "lease",
                                                               "audit_write",
                                                               "audit_control",
                                                               "setfcap",
                                                               "mac_override",
                                                               "mac_admin",
                                                               "syslog",
                                                               "wake_alarm",
                                                               "block_suspend",
                                                               "audit_read",
                                                               "perfmon",
                                                               "bpf",
                                                               "checkpoint_restore"};

// In the order of asm-generic/resource.h.
constexpr std::array<std::string_view, 16> kLimitNames = {
    "cpu",     "fsize", "data",  "stack",      "core",     "rss",  "nproc",  "nofile",
    "memlock", "as",    "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"};

std::string_view KindName(MountKind kind) {
  switch (kind) {
    case MountKind::kBind:
      return "bind";
    case MountKind::kTmpfs:
      return "tmpfs";
    case MountKind::kProc:
      return "proc";
    case MountKind::kDevices:
      return "devices";
    case MountKind::kOverlay:
      return "overlay";
    case MountKind::kSymlink:
      return "symlink";
    case MountKind::kDirectory:
      return "directory";
    case MountKind::kFile:
      return "file";
    case MountKind::kHide:
      return "hide";
  }
  return "?";
}

std::string Ranges(const std::vector<IdRange>& ranges) {
  std::string out;
  for (const IdRange& range : ranges) {
    if (!out.empty()) out += ',';
    out += StrCat(range.inside, ">", range.outside, "+", range.count);
  }
  return out.empty() ? "nothing" : out;
}

std::string Path(std::string_view path) { return EscapeForTerminal(path); }

std::string DescribeMount(const MountItem& item) {
  std::string line = StrCat("mount: ", Path(item.target), " ", KindName(item.kind));
  if (item.slot) line += StrCat(" from=slot:", *item.slot);
  if (!item.source.empty()) line += StrCat(" from=", Path(item.source));
  for (const std::string& lower : item.lowers) line += StrCat(" lower=", Path(lower));
  if (!item.upper.empty()) line += StrCat(" upper=", Path(item.upper), " work=", Path(item.work));
  if (item.size_bytes_max != 0) line += StrCat(" size=", item.size_bytes_max);
  if (item.inodes_max != 0) line += StrCat(" inodes=", item.inodes_max);
  if (item.kind == MountKind::kFile) line += StrCat(" bytes=", item.content.size());
  if (!item.id_map.uids.empty()) line += StrCat(" id_map=", Ranges(item.id_map.uids));
  if (item.read_only) line += " read-only";
  if (item.no_exec) line += " noexec";
  if (item.allow_suid) line += " suid";
  if (item.volatile_upper) line += " volatile";
  if (item.optional) line += " optional";
  return line;
}

std::string DescribeCapabilities(std::uint64_t set) {
  std::string out;
  for (unsigned i = 0; i < 64; ++i) {
    if ((set >> i & 1) == 0) continue;
    if (!out.empty()) out += ' ';
    out += i < kCapabilityNames.size() ? std::string(kCapabilityNames[i]) : StrCat(i);
  }
  return out.empty() ? "none" : out;
}

void DescribeNamespaces(const WallPlan& plan, std::vector<std::string>& out) {
  for (const UserNamespace& user : plan.user_namespaces) {
    out.push_back(StrCat("user namespace: uids=", Ranges(user.uids), " gids=", Ranges(user.gids)));
  }
  std::string names;
  for (const auto& [bit, name] : kNamespaceNames) {
    if (Has(plan.namespaces, bit)) names += StrCat(" ", name);
  }
  out.push_back(StrCat("namespaces:", names.empty() ? " none" : names));
  out.push_back(plan.init ? "init: own" : "init: none");
  if (!plan.host_name.empty()) out.push_back(StrCat("host name: ", Path(plan.host_name)));
}

void DescribePrivileges(const WallPlan& plan, std::vector<std::string>& out) {
  std::string identity = StrCat("identity: uid=", plan.uid, " gid=", plan.gid);
  for (const std::uint32_t group : plan.groups) identity += StrCat(" group=", group);
  out.push_back(identity);
  out.push_back(StrCat("capabilities: ", DescribeCapabilities(plan.capability_bounding),
                       plan.keep_capabilities ? " (in effect)" : " (bounding set only)"));
  out.push_back(plan.no_new_privs ? "no_new_privs: on" : "no_new_privs: off");
  if (!plan.landlock.enabled) out.emplace_back("landlock: off");
  for (const LandlockRule& rule : plan.landlock.rules) {
    const std::string rights = StrCat(rule.rights);
    out.push_back(StrCat("landlock: ", Path(rule.path), " rights=", rights,
                         rule.optional ? " optional" : ""));
  }
  if (plan.landlock.enabled) {
    out.push_back(StrCat("landlock: on abi_min=", plan.landlock.abi_min,
                         plan.landlock.scope_signals ? " scope=signals" : "",
                         plan.landlock.scope_abstract_sockets ? " scope=abstract" : ""));
  }
  if (!plan.seccomp.enabled) {
    out.emplace_back("seccomp: off");
  } else {
    out.push_back(StrCat("seccomp: ", SeccompProfileName(plan.seccomp.profile),
                         plan.seccomp.notify == SeccompNotify::kNone ? "" : " notify=mutating"));
  }
}

void DescribeLimits(const WallPlan& plan, std::vector<std::string>& out) {
  for (const ResourceLimit& limit : plan.limits) {
    const std::string name = limit.resource < kLimitNames.size()
                                 ? std::string(kLimitNames[limit.resource])
                                 : StrCat(limit.resource);
    out.push_back(StrCat("limit: ", name, "=", limit.value));
  }
  std::string line = "cgroup: none";
  if (plan.cgroup.mode == CgroupMode::kCreate) line = StrCat("cgroup: ", Path(plan.cgroup.name));
  if (plan.cgroup.mode == CgroupMode::kJoin)
    line = StrCat("cgroup: slots=", plan.cgroup.slots.size());
  if (plan.cgroup.memory_bytes_max != 0) line += StrCat(" memory=", plan.cgroup.memory_bytes_max);
  if (plan.cgroup.pids_max != 0) line += StrCat(" pids=", plan.cgroup.pids_max);
  if (plan.cgroup.cpu_percent_max != 0) line += StrCat(" cpu%=", plan.cgroup.cpu_percent_max);
  out.push_back(line);
}

void DescribeCommand(const WallPlan& plan, std::vector<std::string>& out) {
  constexpr std::array<std::string_view, 3> kTerminalNames = {"none", "pty", "keep"};
  out.push_back(StrCat("terminal: ", kTerminalNames[static_cast<std::size_t>(plan.terminal)]));
  for (const DescriptorPass& pass : plan.descriptors) {
    out.push_back(StrCat("descriptor: ", pass.inside, " from=slot:", pass.slot));
  }
  out.push_back(StrCat("working directory: ", Path(plan.working_directory)));
  for (const std::string& variable : plan.environment) {
    // Values may be secrets; the name is what a reader needs.
    out.push_back(StrCat("environment: ", Path(variable.substr(0, variable.find('=')))));
  }
  std::string command = "command:";
  if (plan.execute_slot) command = StrCat("command (slot:", *plan.execute_slot, "):");
  for (const std::string& argument : plan.arguments) command += StrCat(" ", Path(argument));
  out.push_back(command);
  for (const std::string& note : plan.notes) out.push_back(StrCat("note: ", Path(note)));
}

}  // namespace

std::vector<std::string> Describe(const WallPlan& plan) {
  constexpr std::array<std::string_view, 3> kNetworkNames = {"host", "loopback", "capture"};
  std::vector<std::string> out;
  DescribeNamespaces(plan, out);
  out.push_back(StrCat("network: ", kNetworkNames[static_cast<std::size_t>(plan.network)]));
  for (const MountItem& item : plan.mounts) out.push_back(DescribeMount(item));
  DescribeLimits(plan, out);
  DescribePrivileges(plan, out);
  DescribeCommand(plan, out);
  return out;
}

}  // namespace soma::walls
