// SPDX-License-Identifier: Apache-2.0
// VmMachine: a virtual machine as plain data, and the QEMU arguments that make it. Pure.
//
// Measured with QEMU 7.2 (Debian 12). Other versions are fine where they know the same machine
// type; nothing is migrated between versions here.
//
// The guest sees one serial cable (the wire), a read-only root disk, a scratch disk, no network
// card, no console, no clock chip, no PCI. Disks and cables come as inherited descriptors, so that
// the jail around QEMU needs no path to any of them.
#ifndef SOMA_LAUNCHER_VM_MACHINE_H_
#define SOMA_LAUNCHER_VM_MACHINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace soma::launcher {

enum class Accelerator : std::uint8_t {
  kTcg,  // software: the level `emulated`
  kKvm,  // hardware, once the probe has shown that it is: the level `microvm`
};

struct VmMachine {
  Accelerator accelerator = Accelerator::kTcg;
  std::uint64_t memory_bytes = 0;  // of the guest, whole MiB, at least kVmMemoryBytesMin
  std::uint64_t tsc_khz =
      0;                // see tsc.h; 0 leaves the calibration to the guest (KVM has its own clock)
  std::string program;  // QEMU, as the jail sees it
  std::string kernel;   // uncompressed, booted by PVH; as the jail sees it
  std::string initrd;
  // Descriptor numbers inside QEMU. The root disk is open read-only, the scratch disk read-write
  // and belongs to this machine alone.
  int root_disk_fd = -1;
  int scratch_disk_fd = -1;
  int wire_fd = -1;     // a connected SOCK_STREAM
  int control_fd = -1;  // a connected SOCK_STREAM for the machine protocol (QMP); -1: none
};

// Below it Debian's cloud kernel does not reach its first program (it takes 80 MiB, and the initrd
// is held twice for a moment).
inline constexpr std::uint64_t kVmMemoryBytesMin = std::uint64_t{128} << 20;

// What the disks are called inside: soma-vm-init finds them by these serial numbers (virtio: at
// most 20 bytes).
inline constexpr std::string_view kRootDiskSerial = "soma-root";
inline constexpr std::string_view kScratchDiskSerial = "soma-scratch";
inline constexpr std::string_view kWirePortName = "soma.wire";
// The I/O port of QEMU's isa-debugcon (docs of that device), where soma-vm-init writes.
inline constexpr std::string_view kVmLogPort = "0x402";

// The guest's kernel command line, with what soma-vm-init reads after "--".
std::string VmKernelCommandLine(const VmMachine& machine);

// The whole argument vector. kInvalidArgument when the machine is not one: no memory, a missing
// descriptor, two the same, a path with a comma (QEMU's separator).
Result<std::vector<std::string>> QemuArguments(const VmMachine& machine);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_VM_MACHINE_H_
