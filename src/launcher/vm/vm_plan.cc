// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/vm_plan.h"

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "launcher/vm/machine.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::launcher {
namespace {

using walls::MountItem;
using walls::MountKind;
using walls::WallPlan;

constexpr const char* kQemu = "/usr/bin/qemu-system-x86_64";

// Inside QEMU. Above the standard streams, and fixed, because they are part of its arguments.
constexpr int kRootDiskFd = 10;
constexpr int kScratchDiskFd = 11;
constexpr int kWireFd = 12;

constexpr std::uint32_t kQemuIdInside = 1;

MountItem Item(MountKind kind, std::string target) {
  MountItem item;
  item.kind = kind;
  item.target = std::move(target);
  return item;
}

MountItem ReadOnly(const std::string& source, std::string target) {
  MountItem item = Item(MountKind::kBind, std::move(target));
  item.source = source;
  item.read_only = true;
  return item;
}

MountItem Link(std::string target, std::string text) {
  MountItem item = Item(MountKind::kSymlink, std::move(target));
  item.source = std::move(text);
  return item;
}

// Debian's layout: one folder of libraries, with QEMU's own modules (the TCG accelerator is one) in
// it; firmware in /usr/share.
std::vector<MountItem> View(const std::string& kernel_directory) {
  std::vector<MountItem> view;
  MountItem root = Item(MountKind::kTmpfs, "/");
  root.size_bytes_max = 64UL * 1024;
  root.inodes_max = 64;
  root.mode = 0555;
  root.read_only = true;
  view.push_back(std::move(root));
  view.push_back(ReadOnly(kQemu, kQemu));
  view.push_back(ReadOnly("/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"));
  view.push_back(ReadOnly("/usr/lib64", "/usr/lib64"));
  view.push_back(Link("/lib", "usr/lib"));
  view.push_back(Link("/lib64", "usr/lib64"));
  for (const char* firmware : {"/usr/share/qemu", "/usr/share/seabios"}) {
    MountItem item = ReadOnly(firmware, firmware);
    item.no_exec = true;
    item.optional = true;
    view.push_back(std::move(item));
  }
  for (const char* file : {"/vmlinux", "/initrd"}) {
    MountItem item = ReadOnly(kernel_directory + file, StrCat("/machine", file));
    item.no_exec = true;
    view.push_back(std::move(item));
  }
  view.push_back(Item(MountKind::kDevices, "/dev"));
  return view;
}

Result<std::vector<std::string>> Arguments(const VmPlanInput& input) {
  return QemuArguments({.accelerator = input.accelerator,
                        .memory_bytes = input.memory_bytes,
                        .tsc_khz = input.tsc_khz,
                        .program = kQemu,
                        .kernel = "/machine/vmlinux",
                        .initrd = "/machine/initrd",
                        .root_disk_fd = kRootDiskFd,
                        .scratch_disk_fd = kScratchDiskFd,
                        .wire_fd = kWireFd});
}

}  // namespace

Result<WallPlan> VmPlan(const VmPlanInput& input) {
  if (input.host_qemu_id == 0 || input.host_root_id == 0 ||
      input.host_qemu_id == input.host_root_id) {
    return Fail(Errc::kInvalidArgument, "a virtual machine's monitor needs host ids of its own");
  }
  WallPlan plan;
  SOMA_ASSIGN(plan.arguments, Arguments(input));
  const std::vector<walls::IdRange> ids = {
      {.inside = 0, .outside = input.host_root_id, .count = 1},
      {.inside = kQemuIdInside, .outside = input.host_qemu_id, .count = 1}};
  plan.user_namespaces = {{.uids = ids, .gids = ids}};
  plan.namespaces = walls::Namespaces::kAll;
  plan.init = false;
  plan.host_name = "machine";
  plan.mounts = View(input.kernel_directory);
  plan.network = walls::NetworkKind::kLoopback;
  plan.uid = kQemuIdInside;
  plan.gid = kQemuIdInside;
  plan.seccomp.enabled = true;
  plan.seccomp.profile = walls::SeccompProfile::kVmm;
  // Descriptors: its own dozen, and an eventfd a queue.
  plan.limits = {{.resource = RLIMIT_CORE, .value = 0},
                 {.resource = RLIMIT_NOFILE, .value = 256},
                 {.resource = RLIMIT_FSIZE, .value = input.scratch_bytes}};
  plan.descriptors = {{.slot = kVmNullSlot, .inside = 0},
                      {.slot = kVmLogSlot, .inside = 1},
                      {.slot = kVmLogSlot, .inside = 2},
                      {.slot = kVmRootDiskSlot, .inside = kRootDiskFd},
                      {.slot = kVmScratchDiskSlot, .inside = kScratchDiskFd},
                      {.slot = kVmWireSlot, .inside = kWireFd}};
  plan.notes = {
      input.accelerator == Accelerator::kTcg
          ? "machine: software emulation, not a hardware boundary: these walls are what holds"
          : "machine: hardware virtualisation",
      StrCat("machine: memory ", input.memory_bytes, ", scratch disk ", input.scratch_bytes,
             ", no network card")};
  return plan;
}

}  // namespace soma::launcher
