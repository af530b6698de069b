// SPDX-License-Identifier: Apache-2.0
#include "launcher/vm/machine.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::launcher {
namespace {

// What makes a boot under emulation quick: code that runs once costs its translation, and the
// following is a third of what a boot computes (counted in instructions, QEMU's -icount, on
// Debian's 6.1). Self tests of the ciphers; certificates for modules (ours are not signed); the
// files of the tracing system, 100 million instructions for what nobody opens; the parse of the
// kernel's type information for calls that only BPF programs make (40 million; whoever loads one
// still can). `lsm=` would switch Landlock off inside, so it is not here.
constexpr std::string_view kCommonFlags =
    "quiet panic=-1 reboot=t cryptomgr.notests audit=0 nowatchdog random.trust_cpu=on "
    "initcall_blacklist=load_system_certificate_list,crypto_kdf108_init,init_encrypted,"
    "init_kprobe_trace,tracer_init_tracefs,init_blk_tracer,"
    "cubictcp_register,bpf_rstat_kfunc_init,bpf_key_sig_kfuncs_init,kfunc_init,"
    "bpf_prog_test_run_init,bpf_mptcp_kfunc_init,bpf_tcp_ca_kfunc_init";
// Not `mitigations=off`, though there is no speculation to mitigate in an emulated processor:
// without them the kernel rewrites each of its indirect calls at boot, and rewriting code is what
// an emulator is worst at (a quarter of the boot's processor time). For the same reason the lock
// prefixes stay.
constexpr std::string_view kTcgFlags = "tsc=reliable no_timer_check noreplace-smp";

// Only what the guest's own programs expect of an x86-64-v2 machine and the kernel's random pool
// needs: each feature more is code to emulate.
constexpr std::string_view kTcgProcessor = "qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt";

// A comma would end the value of an option, and "," doubled is an escape that not every option of
// QEMU knows.
bool IsPlainPath(std::string_view path) {
  return path.starts_with('/') && path.find(',') == std::string_view::npos &&
         path.find('\n') == std::string_view::npos;
}

Status Check(const VmMachine& machine) {
  if (machine.memory_bytes < kVmMemoryBytesMin || machine.memory_bytes % (1U << 20) != 0) {
    return Fail(Errc::kInvalidArgument,
                StrCat("a virtual machine cannot have ", machine.memory_bytes, " bytes of memory"));
  }
  for (const std::string* path : {&machine.program, &machine.kernel, &machine.initrd}) {
    if (!IsPlainPath(*path))
      return Fail(Errc::kInvalidArgument, StrCat("not a path for QEMU: ", *path));
  }
  std::vector<int> numbers = {machine.root_disk_fd, machine.scratch_disk_fd, machine.wire_fd};
  if (machine.control_fd >= 0) numbers.push_back(machine.control_fd);
  std::ranges::sort(numbers);
  // 0, 1 and 2 are the standard streams.
  if (numbers.front() < 3 || std::ranges::adjacent_find(numbers) != numbers.end()) {
    return Fail(Errc::kInvalidArgument, "a virtual machine needs descriptors of its own");
  }
  return {};
}

void Append(std::vector<std::string>& arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
}

struct Disk {
  std::string_view serial;
  int fd;
  bool read_only;
};

// A descriptor set is QEMU's way to open what it cannot name; without auto-read-only=off it would
// first ask for a read-only descriptor of the scratch disk. No lock on the file: the root disk is
// shared by every machine, a scratch disk has one owner.
void AppendDisk(std::vector<std::string>& arguments, const Disk& disk) {
  const std::string set = StrCat(disk.fd);
  std::string node = StrCat("driver=file,node-name=", disk.serial, ",filename=/dev/fdset/", set,
                            ",locking=off,aio=threads,auto-read-only=off");
  node += disk.read_only ? ",read-only=on" : ",read-only=off,discard=unmap,detect-zeroes=unmap";
  Append(arguments,
         {"-add-fd", StrCat("fd=", set, ",set=", set), "-blockdev", std::move(node), "-device",
          StrCat("virtio-blk-device,drive=", disk.serial, ",serial=", disk.serial)});
}

}  // namespace

std::string VmKernelCommandLine(const VmMachine& machine) {
  std::string line;
  if (machine.tsc_khz != 0) line += StrCat("tsc_early_khz=", machine.tsc_khz, " ");
  if (machine.accelerator == Accelerator::kTcg) line += StrCat(kTcgFlags, " ");
  return StrCat(line, kCommonFlags, " -- root=", kRootDiskSerial,
                ":erofs upper=", kScratchDiskSerial, ":ext4 guest");
}

Result<std::vector<std::string>> QemuArguments(const VmMachine& machine) {
  SOMA_TRY(Check(machine));
  const bool tcg = machine.accelerator == Accelerator::kTcg;
  std::vector<std::string> arguments = {machine.program, "-nodefaults", "-no-user-config",
                                        "-no-reboot",    "-display",    "none"};
  // One processor: two are slower under emulation (measured).
  Append(arguments,
         {"-accel", tcg ? "tcg" : "kvm", "-cpu", std::string(tcg ? kTcgProcessor : "host"), "-smp",
          "1", "-m", StrCat(machine.memory_bytes >> 20, "M")});
  // acpi=on because Debian's kernel learns of virtio-mmio devices by ACPI only. rtc stays: without
  // it the boot takes 2 s longer.
  Append(arguments, {"-M", "microvm,acpi=on,pit=off,pic=off,isa-serial=off", "-global",
                     "virtio-mmio.force-legacy=false", "-serial", "none"});
  // Where the guest's first program says why it gives up: a port that needs no driver. On standard
  // output, because a console would have to be probed for.
  Append(arguments, {"-chardev", "stdio,id=log,signal=off", "-device",
                     StrCat("isa-debugcon,iobase=", kVmLogPort, ",chardev=log")});
  Append(arguments, {"-kernel", machine.kernel, "-initrd", machine.initrd, "-append",
                     VmKernelCommandLine(machine)});
  Append(arguments, {"-device", "virtio-serial-device", "-chardev",
                     StrCat("socket,id=wire,fd=", machine.wire_fd), "-device",
                     StrCat("virtserialport,chardev=wire,name=", kWirePortName)});
  AppendDisk(arguments, {.serial = kRootDiskSerial, .fd = machine.root_disk_fd, .read_only = true});
  AppendDisk(arguments,
             {.serial = kScratchDiskSerial, .fd = machine.scratch_disk_fd, .read_only = false});
  if (machine.control_fd >= 0) {
    Append(arguments, {"-chardev", StrCat("socket,id=control,fd=", machine.control_fd), "-mon",
                       "chardev=control,mode=control"});
  }
  // QEMU's own filter, on top of ours: it also forbids what its threads never need after start.
  Append(arguments,
         {"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"});
  return arguments;
}

}  // namespace soma::launcher
