// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace soma::launcher {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

VmMachine Example() {
  return {.memory_bytes = std::uint64_t{256} << 20,
          .tsc_khz = 2'445'000,
          .program = "/usr/bin/qemu-system-x86_64",
          .kernel = "/machine/vmlinux",
          .initrd = "/machine/initrd",
          .root_disk_fd = 10,
          .scratch_disk_fd = 11,
          .wire_fd = 12,
          .control_fd = 13};
}

std::string After(const std::vector<std::string>& arguments, const std::string& option) {
  const auto it = std::ranges::find(arguments, option);
  return it == arguments.end() || it + 1 == arguments.end() ? "" : *(it + 1);
}

TEST(VmMachine, BootsWithoutCalibratingItsCounter) {
  const std::string line = VmKernelCommandLine(Example());
  EXPECT_THAT(line, HasSubstr("tsc_early_khz=2445000 tsc=reliable no_timer_check"));
  EXPECT_THAT(line, HasSubstr("-- root=soma-root:erofs upper=soma-scratch:ext4 guest"));
  // It would switch Landlock off for the tasks inside.
  EXPECT_THAT(line, Not(HasSubstr("lsm=")));
}

TEST(VmMachine, KeepsTheGuestsMitigations) {
  VmMachine machine = Example();
  EXPECT_THAT(VmKernelCommandLine(machine), Not(HasSubstr("mitigations=off")));
  machine.accelerator = Accelerator::kKvm;
  EXPECT_THAT(VmKernelCommandLine(machine), Not(HasSubstr("mitigations=off")));
  EXPECT_THAT(*QemuArguments(machine), Contains("kvm"));
}

TEST(VmMachine, HasNoNetworkCardAndNoOtherDevice) {
  const auto arguments = QemuArguments(Example());
  ASSERT_TRUE(arguments);
  EXPECT_THAT(*arguments, Contains("-nodefaults"));
  for (const char* forbidden : {"-netdev", "-nic", "-net", "-virtfs", "-fsdev", "-usb", "-vnc"}) {
    EXPECT_THAT(*arguments, Not(Contains(forbidden)));
  }
  std::vector<std::string> devices;
  for (std::size_t i = 0; i + 1 < arguments->size(); ++i) {
    if ((*arguments)[i] == "-device") devices.push_back((*arguments)[i + 1]);
  }
  EXPECT_EQ(devices, (std::vector<std::string>{
                         "isa-debugcon,iobase=0x402,chardev=log", "virtio-serial-device",
                         "virtserialport,chardev=wire,name=soma.wire",
                         "virtio-blk-device,drive=soma-root,serial=soma-root",
                         "virtio-blk-device,drive=soma-scratch,serial=soma-scratch"}));
}

TEST(VmMachine, RefusesSpawningInItsOwnFilter) {
  EXPECT_EQ(After(*QemuArguments(Example()), "-sandbox"),
            "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
}

TEST(VmMachine, OpensTheRootReadOnlyAndTheScratchDiskNot) {
  std::vector<std::string> drives;
  const auto arguments = *QemuArguments(Example());
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "-blockdev") drives.push_back(arguments[i + 1]);
  }
  ASSERT_EQ(drives.size(), 2U);
  EXPECT_THAT(drives[0], HasSubstr("filename=/dev/fdset/10,"));
  EXPECT_THAT(drives[0], HasSubstr("read-only=on"));
  EXPECT_THAT(drives[1], HasSubstr("filename=/dev/fdset/11,"));
  EXPECT_THAT(drives[1], HasSubstr("read-only=off"));
}

TEST(VmMachine, LeavesTheControlSocketOutWhenThereIsNone) {
  VmMachine machine = Example();
  machine.control_fd = -1;
  EXPECT_THAT(*QemuArguments(machine), Not(Contains("-mon")));
}

TEST(VmMachine, RefusesWhatIsNoMachine) {
  VmMachine machine = Example();
  machine.memory_bytes = (std::uint64_t{256} << 20) + 1;
  EXPECT_FALSE(QemuArguments(machine));
  machine = Example();
  machine.memory_bytes = kVmMemoryBytesMin - (1U << 20);
  EXPECT_FALSE(QemuArguments(machine));
  machine = Example();
  machine.kernel = "/a,readonly=off";
  EXPECT_FALSE(QemuArguments(machine));
  machine = Example();
  machine.wire_fd = machine.root_disk_fd;
  EXPECT_FALSE(QemuArguments(machine));
  machine = Example();
  machine.scratch_disk_fd = 2;
  EXPECT_FALSE(QemuArguments(machine));
}

}  // namespace
}  // namespace soma::launcher
