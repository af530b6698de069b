// SPDX-License-Identifier: Apache-2.0
// The inside of RunningTask. Internal; see walls/launch.h for the contract.
#ifndef SOMA_WALLS_RUNNING_TASK_H_
#define SOMA_WALLS_RUNNING_TASK_H_

#include <optional>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "walls/channel.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/task_cgroups.h"

namespace soma::walls {

struct RunningTask::State {
  WallPlan plan;
  sys::Process process;
  Fd channel;  // empty once the task's end is closed
  TaskCgroups cgroups;
  Fd listener;
  Fd terminal;
  CaptureSockets capture;

  bool started = false;
  bool reaped = false;
  std::optional<TaskEnd> reported;  // what init said; final once the process is reaped

  // Blocks until a packet came; size 0 is the end of the channel.
  Result<sys::ReceivedPacket> Receive(Packet& packet);
  Status TakeHanded(const Packet& packet, std::vector<Fd> descriptors);
  // Kills, waits and cleans up. For a launch that failed.
  void EndNow();
  void Kill();

  std::optional<TaskEvent> Advance();

 private:
  std::optional<TaskEvent> AdvanceChannel();
  std::optional<TaskEvent> AdvanceProcess();
  std::optional<TaskEvent> MarkStarted();
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_RUNNING_TASK_H_
