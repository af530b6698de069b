// SPDX-License-Identifier: Apache-2.0
// Is /dev/kvm hardware virtualisation, or an interpreter behind the same interface?
//
// A guest without any operating system runs a counted loop at CPL 0 (protected mode, flat segments)
// and leaves by a port write; the time from KVM_RUN to the exit gives instructions a second.
// Measured: kvm_pvm, which runs ring 3 natively and interprets ring 0, does about 1.5 million;
// nested SVM under QEMU's software CPU 230 million; hardware over 1,000 million. So the threshold
// lies a good factor from both. No stock kernel boots on an interpreter: it stops at the first
// instruction that isn't emulated.
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ratio>
#include <string>

#include "base/text.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/fd.h"

namespace soma::probe {
namespace {

constexpr double kMillionsMin = 30;  // million instructions a second that count as hardware
constexpr std::size_t kMemoryBytes = 0x2000;
constexpr std::uint64_t kCodeAddress = 0x1000;
constexpr std::uint8_t kPort = 0x10;
constexpr std::uint32_t kInstructionsPerRound = 2;

// mov ecx, rounds; again: dec ecx; jnz again; out kPort, al
struct Code {
  std::uint8_t bytes[10];
};
Code LoopCode(std::uint32_t rounds) {
  Code code{{0xB9, 0, 0, 0, 0, 0x49, 0x75, 0xFD, 0xE6, kPort}};
  std::memcpy(code.bytes + 1, &rounds, sizeof rounds);
  return code;
}

struct Machine {
  Fd kvm;
  Fd vm;
  Fd vcpu;
  void* memory = MAP_FAILED;
  kvm_run* run = nullptr;
};

// Opens everything; the failing step and errno otherwise. The process is short-lived, so mappings
// are left to its end.
Answer Open(Machine& machine) {
  machine.kvm = Fd(::open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (!machine.kvm) return Missing("open /dev/kvm", errno);
  machine.vm = Fd(::ioctl(machine.kvm.get(), KVM_CREATE_VM, 0));
  if (!machine.vm) return Missing("KVM_CREATE_VM", errno);
  machine.memory =
      ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (machine.memory == MAP_FAILED) return Missing("mmap", errno);
  kvm_userspace_memory_region region{
      .memory_size = kMemoryBytes,
      .userspace_addr = reinterpret_cast<std::uint64_t>(machine.memory)};
  if (::ioctl(machine.vm.get(), KVM_SET_USER_MEMORY_REGION, &region) != 0) {
    return Missing("KVM_SET_USER_MEMORY_REGION", errno);
  }
  machine.vcpu = Fd(::ioctl(machine.vm.get(), KVM_CREATE_VCPU, 0));
  if (!machine.vcpu) return Missing("KVM_CREATE_VCPU", errno);
  const int size = ::ioctl(machine.kvm.get(), KVM_GET_VCPU_MMAP_SIZE, 0);
  void* run = size > 0 ? ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE,
                                MAP_SHARED, machine.vcpu.get(), 0)
                       : MAP_FAILED;
  if (run == MAP_FAILED) return Missing("map kvm_run", errno);
  machine.run = static_cast<kvm_run*>(run);
  return Proven("");
}

// Flat 32-bit protected mode at CPL 0 (Intel SDM volume 3, 3.4.5: descriptor types 0xB and 0x3).
int EnterProtectedMode(const Machine& machine) {
  kvm_sregs registers{};
  if (::ioctl(machine.vcpu.get(), KVM_GET_SREGS, &registers) != 0) return errno;
  constexpr std::uint64_t kProtectionEnable = 1;
  registers.cr0 |= kProtectionEnable;
  kvm_segment flat{.base = 0,
                   .limit = 0xFFFFFFFF,
                   .selector = 8,
                   .type = 0xB,
                   .present = 1,
                   .dpl = 0,
                   .db = 1,
                   .s = 1,
                   .g = 1};
  registers.cs = flat;
  flat.type = 0x3;
  flat.selector = 16;
  registers.ds = registers.es = registers.fs = registers.gs = registers.ss = flat;
  return ::ioctl(machine.vcpu.get(), KVM_SET_SREGS, &registers) == 0 ? 0 : errno;
}

// One run of the loop; million instructions a second, or an answer that says what failed.
Answer Measure(const Machine& machine, std::uint32_t rounds) {
  const Code code = LoopCode(rounds);
  std::memcpy(static_cast<char*>(machine.memory) + kCodeAddress, code.bytes, sizeof code.bytes);
  if (const int error = EnterProtectedMode(machine); error != 0)
    return Missing("KVM_SET_SREGS", error);
  const kvm_regs registers{.rip = kCodeAddress, .rflags = 2};
  if (::ioctl(machine.vcpu.get(), KVM_SET_REGS, &registers) != 0)
    return Missing("KVM_SET_REGS", errno);
  const auto start = std::chrono::steady_clock::now();
  while (::ioctl(machine.vcpu.get(), KVM_RUN, 0) != 0) {
    if (errno != EINTR) return Missing("KVM_RUN", errno);
  }
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  if (machine.run->exit_reason != KVM_EXIT_IO || machine.run->io.port != kPort) {
    return Missing(StrCat("the guest stopped with exit reason ", machine.run->exit_reason), 0);
  }
  // Instructions a microsecond are millions a second.
  return Proven(
      "", static_cast<double>(rounds) * kInstructionsPerRound / std::max(elapsed.count(), 0.1));
}

Answer TryKvm() {
  Machine machine;
  if (const Answer open = Open(machine); open.finding != Finding::kProven) return open;
  // First few enough that an interpreter is done in a third of a second, and twice, because the
  // first entry faults everything in; then enough for a figure.
  constexpr std::uint32_t kFewRounds = 200'000;
  constexpr std::uint32_t kManyRounds = 20'000'000;
  Answer answer = Measure(machine, kFewRounds / 10);
  if (answer.finding == Finding::kProven) answer = Measure(machine, kFewRounds);
  if (answer.finding == Finding::kProven && answer.figure >= kMillionsMin) {
    answer = Measure(machine, kManyRounds);
  }
  if (answer.finding != Finding::kProven) return answer;
  const auto tenths = static_cast<std::int64_t>(answer.figure * 10);
  const std::string figure =
      StrCat("ring 0 runs ", tenths / 10, ".", tenths % 10, " million instructions a second");
  if (answer.figure >= kMillionsMin) return Proven(figure, answer.figure);
  Answer slow = Leaks(StrCat(figure, ": interpreted, no stock kernel boots on it (",
                             static_cast<int>(kMillionsMin), " needed)"));
  slow.figure = answer.figure;
  return slow;
}

}  // namespace

Row ProbeKvm() {
  return MakeRow(Feature::kKvm, Try(TryKvm),
                 "a machine with hardware virtualisation (nested, if it is a virtual machine "
                 "itself) and access to "
                 "/dev/kvm (group kvm); `--isolation emulated` runs the same guest in software, "
                 "which is no hardware "
                 "boundary");
}

}  // namespace soma::probe
