// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "base/text.h"
#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/fd.h"
#include "sys/landlock.h"
#include "sys/process.h"
#include "sys/seccomp.h"
#include "walls/seccomp_profile.h"

namespace soma::probe {
namespace {

constexpr const char* kLandlockRemedy =
    "boot with `landlock` in the lsm= list (kernel 5.13 or newer, CONFIG_SECURITY_LANDLOCK)";
constexpr int kAbiTcp = 4;
constexpr int kAbiScope = 6;

// No new privileges, then the rule set; 0 or an errno.
int Restrict(const sys::LandlockRuleset& ruleset) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return sys::LandlockRestrictSelf(ruleset.fd().get());
}

int MakeFile(const std::string& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return file ? 0 : errno;
}

int BindTcp() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket.get(), raw, sizeof address) == 0 ? 0 : errno;
}

Answer TryLandlock(const Scratch& scratch) {
  const std::string inside = scratch.Child("inside");
  if (::mkdir(inside.c_str(), 0700) != 0) return Missing("mkdir", errno);
  if (const int error = MakeFile(scratch.Child("before")); error != 0) {
    return Missing("write without walls", error);
  }
  auto ruleset = sys::LandlockRuleset::Create({.fs = sys::kLandlockAllFs});
  if (!ruleset) return Missing("create a rule set", ruleset.error().errno_value());
  const Fd directory(::open(inside.c_str(), O_PATH | O_CLOEXEC));
  if (!ruleset->AllowPath(directory.get(), sys::kLandlockAllFs))
    return Missing("add a rule", errno);
  if (const int error = Restrict(*ruleset); error != 0) return Missing("restrict", error);
  if (MakeFile(scratch.Child("after")) != EACCES)
    return Leaks("a write outside the rules was not refused");
  if (const int error = MakeFile(inside + "/file"); error != 0)
    return Missing("write inside the rules", error);
  const int abi = sys::LandlockAbi();
  return Proven(StrCat("ABI ", abi, "; a write outside the rules was refused, one inside works"),
                abi);
}

// int $0x80 enters the kernel by the 32-bit table, where number 20 is getpid.
void Call32Bit() {
  // NOLINTNEXTLINE(misc-const-correctness): the call's answer comes back in it.
  long number = 20;
  asm volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
}

int LoadStrict() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return sys::LoadSeccomp(
      walls::ProgramFor(walls::SeccompProfile::kStrict, walls::SeccompNotify::kNone));
}

// A child of its own, because it must die.
bool Dies32Bit() {
  const sys::CloneResult child = sys::Clone(0);
  if (child.pid == 0) {
    if (LoadStrict() != 0) ::_exit(0);
    Call32Bit();
    ::_exit(0);
  }
  const Fd pidfd(child.pidfd);
  int status = 0;
  return child.pid > 0 && ::waitpid(child.pid, &status, 0) > 0 && WIFSIGNALED(status);
}

// Refuses getppid, which nothing else ever does: so this proves seccomp inside another filter too.
constexpr sock_filter kRefuseGetppid[] = {
    {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
    {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getppid},
    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
};

Answer TrySeccomp() {
  if (::syscall(SYS_getppid) < 0) return Missing("getppid without walls", errno);
  const bool foreign_dies = Dies32Bit();
  if (const int error = LoadStrict(); error != 0) return Missing("load the filter", error);
  if (!foreign_dies) return Leaks("a 32-bit call went through");
  if (const int error = sys::LoadSeccomp({kRefuseGetppid}); error != 0) {
    return Missing("load a second filter", error);
  }
  if (::syscall(SYS_getppid) != -1 || errno != EPERM) return Leaks("a refused call went through");
  return Proven("a call that a filter refuses answers EPERM; a 32-bit call kills");
}

}  // namespace

Row ProbeLandlock(const Scratch& scratch) {
  return MakeRow(Feature::kLandlock, Try([&] { return TryLandlock(scratch); }), kLandlockRemedy);
}

Row ProbeLandlockTcp() {
  const Answer answer = Try([] {
    if (sys::LandlockAbi() < kAbiTcp) return Missing(StrCat("ABI ", sys::LandlockAbi()), 0);
    if (const int error = BindTcp(); error != 0) return Missing("bind without walls", error);
    const auto ruleset = sys::LandlockRuleset::Create({.net = sys::kLandlockBindTcp});
    if (!ruleset) return Missing("create a rule set", ruleset.error().errno_value());
    if (const int error = Restrict(*ruleset); error != 0) return Missing("restrict", error);
    if (BindTcp() != EACCES) return Leaks("a bind without a rule was not refused");
    return Proven("a TCP bind without a rule was refused");
  });
  return MakeRow(Feature::kLandlockTcp, answer, "kernel 6.7 or newer (Landlock ABI 4)");
}

Row ProbeLandlockScope() {
  const pid_t outside = ::getpid();
  const Answer answer = Try([outside] {
    if (sys::LandlockAbi() < kAbiScope) return Missing(StrCat("ABI ", sys::LandlockAbi()), 0);
    if (::kill(outside, 0) != 0) return Missing("signal without walls", errno);
    const auto ruleset = sys::LandlockRuleset::Create({.scoped = sys::kLandlockScopeSignal});
    if (!ruleset) return Missing("create a rule set", ruleset.error().errno_value());
    if (const int error = Restrict(*ruleset); error != 0) return Missing("restrict", error);
    if (::kill(outside, 0) == 0) return Leaks("a signal left the scope");
    return Proven("a signal to a process outside was refused");
  });
  return MakeRow(Feature::kLandlockScope, answer, "kernel 6.12 or newer (Landlock ABI 6)");
}

Row ProbeSeccomp() {
  return MakeRow(Feature::kSeccomp, Try(TrySeccomp), "a kernel with CONFIG_SECCOMP_FILTER");
}

Row ProbeSeccompNotify() {
  const Answer answer = Try([] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Missing("no_new_privs", errno);
    auto loaded = sys::LoadSeccompWithListener(
        walls::ProgramFor(walls::SeccompProfile::kStrict, walls::SeccompNotify::kMutating));
    if (loaded.error != 0) return Missing("load with a listener", loaded.error);
    loaded.listener.Reset();
    if (::mkdir("/soma-probe-never", 0700) != -1 || errno != ENOSYS) {
      return Leaks("a call without a supervisor went through");
    }
    return Proven("the listener opens; a call without a supervisor is refused");
  });
  return MakeRow(Feature::kSeccompNotify, answer,
                 "kernel 5.19 or newer; EBUSY: a filter around this process has the only listener "
                 "(soma inside soma, "
                 "some container engines): refusals come without a reason");
}

}  // namespace soma::probe
