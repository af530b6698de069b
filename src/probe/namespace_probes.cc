// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/chroot.h"
#include "sys/fd.h"
#include "sys/loopback.h"
#include "sys/process.h"

namespace soma::probe {
namespace {

constexpr std::string_view kUserNamespaceRemedy =
    "allow unprivileged user namespaces: sysctl user.max_user_namespaces > 0, on Debian "
    "kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0 "
    "or an AppArmor "
    "profile for soma; without them soma uses Landlock and seccomp only, and says so";
constexpr std::string_view kNamespaceRemedy = "needs user namespaces (see that row) or root";

int Connect(const sockaddr_in& address) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(socket.get(), raw, sizeof address) == 0 ? 0 : errno;
}

}  // namespace

Row ProbeUserNamespace(const Scratch& scratch) {
  const Answer answer = Try([&] {
    std::string_view step;
    if (const int error = EnterNamespaces(CLONE_NEWNS, step); error != 0)
      return Missing(step, error);
    // AppArmor lets the namespace be made and refuses what it is made for.
    if (::mount("soma-probe", scratch.path().c_str(), "tmpfs", 0, nullptr) != 0) {
      return Missing("mount inside (the namespace gives no capabilities)", errno);
    }
    if (::setresuid(12345, 12345, 12345) == 0) return Leaks("an unmapped id could be taken");
    return Proven("root inside mounted a tmpfs; taking an unmapped id was refused");
  });
  return MakeRow(Feature::kUserNamespace, answer,
                 sys::InChroot() ? sys::kChrootRemedy : kUserNamespaceRemedy);
}

Row ProbeMountNamespace(const Scratch& scratch) {
  const std::string& path = scratch.path();
  Answer answer = Try([&] {
    std::string_view step;
    if (const int error = EnterNamespaces(CLONE_NEWNS, step); error != 0)
      return Missing(step, error);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return Missing("make mounts private", errno);
    }
    if (::mount("soma-probe", path.c_str(), "tmpfs", 0, nullptr) != 0)
      return Missing("mount", errno);
    if (::mkdir(scratch.Child("inside").c_str(), 0700) != 0) return Missing("mkdir", errno);
    if (::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
      return Missing("make it read-only", errno);
    }
    if (::mkdir(scratch.Child("more").c_str(), 0700) == 0)
      return Leaks("a read-only mount was written");
    return Proven(
        "a write to a read-only mount was refused; a mount made inside isn't seen outside");
  });
  struct stat facts{};
  if (answer.finding == Finding::kProven && ::stat(scratch.Child("inside").c_str(), &facts) == 0) {
    answer = Leaks("a mount made inside is seen outside");
  }
  return MakeRow(Feature::kMountNamespace, answer, kNamespaceRemedy);
}

Row ProbePidNamespace() {
  const pid_t outside = ::getpid();
  const Answer answer = Try([&] {
    std::string_view step;
    if (const int error = EnterNamespaces(CLONE_NEWPID, step); error != 0)
      return Missing(step, error);
    const sys::CloneResult child = sys::Clone(0);
    if (child.pid < 0) return Missing("fork", child.error);
    if (child.pid == 0) {
      if (::getpid() != 1) ::_exit(2);
      ::_exit(::kill(outside, 0) == -1 && errno == ESRCH ? 0 : 3);
    }
    int status = 0;
    if (::waitpid(child.pid, &status, 0) < 0) return Missing("wait", errno);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      return Leaks("a process outside could be signalled");
    return Proven("the first process is pid 1; a process outside has no number inside");
  });
  return MakeRow(Feature::kPidNamespace, answer, kNamespaceRemedy);
}

Row ProbeNetworkNamespace() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (!listener || ::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 4) != 0 ||
      ::getsockname(listener.get(), raw, &size) != 0) {
    return MakeRow(Feature::kNetworkNamespace, Answer{}, "");
  }
  const Answer answer = Try([&] {
    if (const int error = Connect(address); error != 0)
      return Missing("connect without walls", error);
    std::string_view step;
    if (const int error = EnterNamespaces(CLONE_NEWNET, step); error != 0)
      return Missing(step, error);
    if (const int error = sys::RaiseLoopback(); error != 0) return Missing("raise lo", error);
    if (Connect(address) == 0) return Leaks("a listener outside was reached");
    return Proven("a listener on 127.0.0.1 outside was reached before and refused inside");
  });
  return MakeRow(Feature::kNetworkNamespace, answer, kNamespaceRemedy);
}

Row ProbeUtsNamespace() {
  utsname before{};
  ::uname(&before);
  Answer answer = Try([] {
    std::string_view step;
    if (const int error = EnterNamespaces(CLONE_NEWUTS, step); error != 0)
      return Missing(step, error);
    constexpr std::string_view kName = "soma-probe";
    if (::sethostname(kName.data(), kName.size()) != 0) return Missing("sethostname", errno);
    return Proven("the host name was changed inside and not outside");
  });
  utsname after{};
  ::uname(&after);
  if (std::strcmp(before.nodename, after.nodename) != 0)
    answer = Leaks("the host's name was changed");
  return MakeRow(Feature::kUtsNamespace, answer, kNamespaceRemedy);
}

}  // namespace soma::probe
