// SPDX-License-Identifier: Apache-2.0
#include "walls/launch.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <expected>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "walls/channel.h"
#include "walls/inside.h"
#include "walls/plan.h"
#include "walls/recipe.h"
#include "walls/running_task.h"
#include "walls/step.h"
#include "walls/test_walls.h"

namespace soma::walls {
namespace {

// "mount /proc: EPERM", "landlock /usr: ENOENT", "seccomp: EINVAL".
std::string FailureText(const WallPlan& plan, const StepFailure& failure) {
  std::string text(StepName(failure.step));
  if (failure.step == Step::kMountItem && failure.item < plan.mounts.size()) {
    text += StrCat(" ", EscapeForTerminal(plan.mounts[failure.item].target));
  }
  if (failure.step == Step::kLandlock && failure.item < plan.landlock.rules.size()) {
    text += StrCat(" ", EscapeForTerminal(plan.landlock.rules[failure.item].path));
  }
  return text;
}

Error FailureError(const WallPlan& plan, const StepFailure& failure) {
  return Error::FromErrno(failure.errno_value, FailureText(plan, failure));
}

// Blocks every signal while it lives, so that the clone starts with all blocked and no handler of
// the launcher's can run in it.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

// The launcher's part of the set-up, from the clone to the moment when the walls stand.
class LaunchRun {
 public:
  LaunchRun(const WallPlan& plan, RunningTask::State& state) : plan_(plan), state_(state) {}

  Status Run(Recipe& recipe) {
    SOMA_ASSIGN(auto pair, sys::MakeSocketPair(SOCK_SEQPACKET));
    state_.channel = std::move(pair.first);
    recipe.channel = pair.second.get();
    recipe.launcher_end = state_.channel.get();
    recipe.await_go = recipe.maps_by_launcher || state_.cgroups.NeedsAttach();
    SOMA_TRY(CloneInside(recipe));
    pair.second.Reset();
    recipe.mounts.clear();  // the detached mounts are the task's now
    if (recipe.await_go || plan_.user_namespaces.size() == 2) SOMA_TRY(LetGo(recipe));
    return AwaitWalls();
  }

 private:
  Status CloneInside(Recipe& recipe) {
    sys::CloneResult clone;
    {
      const AllSignalsBlocked blocked;
      recipe.signal_mask = blocked.before();
      clone = sys::Clone(CloneFlags(plan_) | CLONE_CLEAR_SIGHAND, state_.cgroups.CloneInto());
      if (clone.pid == 0) RunInside(recipe);
    }
    if (clone.pid < 0) {
      return std::unexpected(
          FailureError(plan_, {.step = Step::kCloneTask, .errno_value = clone.error}));
    }
    state_.process = sys::Process(clone.pid, Fd(clone.pidfd));
    return {};
  }

  Status LetGo(const Recipe& recipe) {
    if (recipe.maps_by_launcher) {
      const int written =
          WriteIdMaps(state_.process.pid(), recipe.uid_maps[0], recipe.gid_maps[0], false);
      if (written != 0) {
        return std::unexpected(
            FailureError(plan_, {.step = Step::kWriteIdMaps, .errno_value = written}));
      }
    }
    SOMA_TRY_WHILE(state_.cgroups.Attach(state_.process.pid()), "enter cgroup");
    return SendGo();
  }

  Status SendGo() {
    const int sent = SendPacket(state_.channel.get(), {.kind = PacketKind::kGo});
    // A task that died before has left its reason in the channel: AwaitWalls reads it.
    if (sent != 0 && sent != EPIPE && sent != ECONNRESET) {
      return std::unexpected(Error::FromErrno(sent, "speaking to the task"));
    }
    return {};
  }

  Status AwaitWalls() {
    for (;;) {
      Packet packet;
      SOMA_ASSIGN(auto received, state_.Receive(packet));
      if (received.size == 0) {
        return Fail(Errc::kUnavailable, "the task died while its walls were built");
      }
      switch (packet.kind) {
        case PacketKind::kFailed:
          return std::unexpected(FailureError(
              plan_, {.step = packet.step, .item = packet.item, .errno_value = packet.value}));
        case PacketKind::kStage:
          SOMA_TRY(TakeInner(packet, received));
          break;
        case PacketKind::kStands:
          return state_.TakeHanded(packet, std::move(received.descriptors));
        default:
          return Fail(Errc::kInternal, "the task said something out of turn");
      }
    }
  }

  // The outer process has done its part; the inner one is our child by CLONE_PARENT.
  Status TakeInner(const Packet& packet, sys::ReceivedPacket& received) {
    if (received.descriptors.size() != 1) return Fail(Errc::kInternal, "no pidfd came");
    sys::Process outer = std::exchange(
        state_.process, sys::Process(packet.value, std::move(received.descriptors.front())));
    SOMA_TRY_WHILE(outer.Wait(), "outer namespace");
    return SendGo();
  }

  const WallPlan& plan_;
  RunningTask::State& state_;
};

}  // namespace

Result<RunningTask> Launch(const WallPlan& plan, const LaunchOptions& options) {
  auto state = std::make_unique<RunningTask::State>();
  state->plan = plan;
  SOMA_TRY_WHILE(Validate(state->plan), "wall plan");
  SwitchWallsOff(state->plan);
  SOMA_ASSIGN(auto recipe, MakeRecipe(state->plan, options));
  SOMA_TRY_WHILE(state->cgroups.Prepare(state->plan.cgroup, options), "cgroup");
  auto launched = LaunchRun(state->plan, *state).Run(recipe);
  if (!launched) {
    state->EndNow();
    return std::unexpected(std::move(launched).error());
  }
  return RunningTask(std::move(state));
}

}  // namespace soma::walls
