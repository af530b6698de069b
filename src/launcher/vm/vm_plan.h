// SPDX-License-Identifier: Apache-2.0
// The jail of a virtual machine's monitor: the walls around QEMU, from what the launcher itself
// decided. Pure.
//
// QEMU parses what the guest writes into its devices, so it counts as broken into. In this jail it
// has an unused host id, an own and empty user, mount, pid, network, ipc, uts and cgroup namespace,
// no capability, a root of read-only libraries without a shell, one seccomp filter of ours and one
// of its own, and beside the guest's disks and cables no descriptor. Software emulation is not a
// hardware boundary: these walls are what holds at the level `emulated`.
#ifndef SOMA_LAUNCHER_VM_VM_PLAN_H_
#define SOMA_LAUNCHER_VM_VM_PLAN_H_

#include <cstdint>
#include <string>

#include "base/result.h"
#include "launcher/vm/machine.h"
#include "walls/plan.h"

namespace soma::launcher {

// The slots of the plan: LaunchOptions::descriptors in this order.
inline constexpr std::uint32_t kVmRootDiskSlot = 0;     // root.erofs, open read-only
inline constexpr std::uint32_t kVmScratchDiskSlot = 1;  // the scratch image, open read-write
inline constexpr std::uint32_t kVmWireSlot = 2;         // the guest's end of the cable, SOCK_STREAM
inline constexpr std::uint32_t kVmNullSlot = 3;         // /dev/null, for standard input
// QEMU's words and those of the guest's first program. Whoever is root inside may write here
// without end: a pipe or file of bounded size, or /dev/null.
inline constexpr std::uint32_t kVmLogSlot = 4;
inline constexpr std::uint32_t kVmSlots = 5;

struct VmPlanInput {
  Accelerator accelerator = Accelerator::kTcg;
  std::uint64_t memory_bytes = 0;   // of the guest; the cgroup needs kVmMonitorBytes more
  std::uint64_t scratch_bytes = 0;  // QEMU can't make the scratch image, or any file, larger
  std::uint64_t tsc_khz = 0;
  std::string kernel_directory;    // on the host, with `vmlinux` and `initrd`
  std::uint32_t host_root_id = 0;  // an unused host id: uid 0 of the jail, which nobody is
  std::uint32_t host_qemu_id = 0;  // another one: QEMU itself
};

// What QEMU needs beside the guest's memory: translated code, its heap, its libraries' data
// (measured 30 MB with a warm guest, and the code buffer may grow to a share of it). Add it to the
// memory limit of the cgroup.
inline constexpr std::uint64_t kVmMonitorBytes = std::uint64_t{256} << 20;

// kInvalidArgument as QemuArguments, and for ids that are root's or the same.
Result<walls::WallPlan> VmPlan(const VmPlanInput& input);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_VM_VM_PLAN_H_
