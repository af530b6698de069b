// SPDX-License-Identifier: Apache-2.0
#include "walls/inside.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

#include "sys/fd.h"
#include "sys/loopback.h"
#include "sys/process.h"
#include "sys/pseudo_terminal.h"
#include "walls/capture.h"
#include "walls/channel.h"
#include "walls/command.h"
#include "walls/init.h"
#include "walls/mount_view.h"
#include "walls/plan.h"
#include "walls/privileges.h"
#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

std::uint64_t InnerFlags(const WallPlan& plan) {
  std::uint64_t flags = plan.user_namespaces.empty() ? 0 : std::uint64_t{CLONE_NEWUSER};
  if (Has(plan.namespaces, Namespaces::kMount)) flags |= CLONE_NEWNS;
  if (Has(plan.namespaces, Namespaces::kPid)) flags |= CLONE_NEWPID;
  if (Has(plan.namespaces, Namespaces::kIpc)) flags |= CLONE_NEWIPC;
  if (Has(plan.namespaces, Namespaces::kUts)) flags |= CLONE_NEWUTS;
  if (Has(plan.namespaces, Namespaces::kCgroup)) flags |= CLONE_NEWCGROUP;
  return flags;
}

bool Nested(const WallPlan& plan) { return plan.user_namespaces.size() == 2; }

class InsideRun {
 public:
  explicit InsideRun(Recipe& recipe) : recipe_(recipe), plan_(*recipe.plan) {}

  [[noreturn]] void Run() {
    ::close(recipe_.launcher_end);
    (void)::prctl(PR_SET_NAME, "soma-init", 0, 0, 0);
    ::umask(0);
    Check(Step::kDescriptors, MoveDescriptorsUp());
    Tie();
    if (Nested(plan_)) {
      EnterInner();
    } else {
      EnterOnly();
    }
    BuildWalls();
    if (plan_.init) {
      Check(Step::kTieToLauncher, PrepareInit());
      // With a pid namespace nothing outside has to be looked for, so init goes behind the walls
      // too.
      if (Has(plan_.namespaces, Namespaces::kPid)) StandBehindWalls();
      RunInit(recipe_, inside_);
    }
    StandBehindWalls();
    const StepFailure failure = Execute(recipe_, -1);
    FailStep(recipe_.channel, failure);
  }

 private:
  void Check(Step step, int errno_value, std::uint32_t item = 0) {
    if (errno_value != 0) {
      FailStep(recipe_.channel, {.step = step, .item = item, .errno_value = errno_value});
    }
  }
  void Check(const StepFailure& failure) {
    if (failure.step != Step::kNone) FailStep(recipe_.channel, failure);
  }

  // Without a pid namespace init must outlive the launcher's sudden death by the moment that it
  // needs to end its descendants; it sees the channel close.
  bool DiesAtOnce() const { return !plan_.init || Has(plan_.namespaces, Namespaces::kPid); }

  void Tie() {
    if (DiesAtOnce()) Check(Step::kTieToLauncher, sys::DieWithParent(SIGKILL));
    pollfd peer{.fd = recipe_.channel, .events = POLLRDHUP, .revents = 0};
    // The launcher may have died before the prctl.
    if (::poll(&peer, 1, 0) == 1 && (peer.revents & (POLLRDHUP | POLLHUP)) != 0) ::_exit(125);
  }

  // Above every number that the plan uses, so that arranging them at the end overwrites nothing.
  int MoveDescriptorsUp() {
    const int above = recipe_.passes.empty() ? 3 : std::max(3, recipe_.passes.back().to + 1);
    const auto move = [above](int& number) {
      number = ::fcntl(number, F_DUPFD_CLOEXEC, above);
      return number >= 0 ? 0 : errno;
    };
    const int channel = std::exchange(recipe_.channel, -1);
    recipe_.channel = ::fcntl(channel, F_DUPFD_CLOEXEC, above);
    if (recipe_.channel < 0) {
      recipe_.channel = channel;
      return errno;
    }
    ::close(channel);
    for (Recipe::Pass& pass : recipe_.passes) {
      const bool standard = pass.from == pass.to && pass.from <= 2;
      const int moved = move(pass.from);
      if (moved == EBADF && standard) continue;
      if (moved != 0) return moved;
    }
    return recipe_.execute_descriptor >= 0 ? move(recipe_.execute_descriptor) : 0;
  }

  void AwaitGo() {
    Packet packet;
    if (!ReceivePacket(recipe_.channel, packet) || packet.kind != PacketKind::kGo) ::_exit(125);
  }

  void EnterOnly() {
    if (recipe_.await_go) AwaitGo();
    if (!plan_.user_namespaces.empty()) {
      if (!recipe_.maps_by_launcher) {
        Check(Step::kWriteIdMaps, WriteIdMaps(0, recipe_.uid_maps[0], recipe_.gid_maps[0], true));
      }
      Check(BecomeNamespaceOwner(plan_.user_namespaces[0], recipe_.set_groups));
      Tie();
    }
    BuildNetwork();
  }

  // The outer user namespace with the network exists; this process makes the inner one as a child
  // of the launcher's (CLONE_PARENT), writes its map (only a process of the outer one may), and is
  // done.
  void EnterInner() {
    AwaitGo();
    Check(BecomeNamespaceOwner(plan_.user_namespaces[0], true));
    Tie();
    BuildNetwork();
    // Or /proc/PID/uid_map of the child would belong to the host's root (proc(5)).
    Check(Step::kCloneTask, ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? 0 : errno);
    const sys::CloneResult clone = sys::Clone(InnerFlags(plan_) | CLONE_PARENT);
    if (clone.pid < 0) Check(Step::kCloneTask, clone.error);
    if (clone.pid > 0) {
      Check(Step::kWriteIdMaps,
            WriteIdMaps(clone.pid, recipe_.uid_maps[1], recipe_.gid_maps[1], false));
      (void)SendPacket(recipe_.channel, {.kind = PacketKind::kStage, .value = clone.pid},
                       {&clone.pidfd, 1});
      ::_exit(0);
    }
    Tie();
    AwaitGo();
    Check(BecomeNamespaceOwner(plan_.user_namespaces[1], true));
    Tie();
  }

  void BuildNetwork() {
    if (!Has(plan_.namespaces, Namespaces::kNetwork)) return;
    Check(Step::kLoopback, sys::RaiseLoopback());
    if (plan_.network == NetworkKind::kCapture) {
      Check(Step::kCapture, OpenCapture(inside_.capture));
    }
  }

  void BuildWalls() {
    if (!plan_.host_name.empty()) {
      const auto& name = plan_.host_name;
      Check(Step::kHostName, ::sethostname(name.c_str(), name.size()) == 0 ? 0 : errno);
    }
    if (Has(plan_.namespaces, Namespaces::kMount)) Check(BuildMountView(recipe_));
    if (plan_.terminal == TerminalKind::kPty) {
      const sys::TerminalPair pair = sys::OpenTerminalPair("/dev/pts/ptmx");
      Check(Step::kTerminal, pair.error);
      inside_.terminal_master = Fd(pair.master);
      inside_.terminal_slave = Fd(pair.slave);
    }
    Check(SetLimits(plan_));
  }

  int PrepareInit() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    inside_.signals = Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!inside_.signals) return errno;
    if (!Has(plan_.namespaces, Namespaces::kPid) &&
        ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
      return errno;
    }
    // The command runs with the same id: it must not read or trace us.
    return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : errno;
  }

  void StandBehindWalls() {
    Check(GiveUpPrivileges(recipe_, inside_.listener));
    Check(Step::kHandOut, SendStands(recipe_, inside_));
    inside_.listener.Reset();
    inside_.terminal_master.Reset();
  }

  Recipe& recipe_;
  const WallPlan& plan_;
  Inside inside_;
};

}  // namespace

std::uint64_t CloneFlags(const WallPlan& plan) noexcept {
  const std::uint64_t network =
      Has(plan.namespaces, Namespaces::kNetwork) ? std::uint64_t{CLONE_NEWNET} : 0;
  if (Nested(plan)) return CLONE_NEWUSER | network;
  return InnerFlags(plan) | network;
}

void RunInside(Recipe& recipe) noexcept { InsideRun(recipe).Run(); }

}  // namespace soma::walls
