// SPDX-License-Identifier: Apache-2.0
// The worker's inner state; internal to this room.
#ifndef SOMA_LAUNCHER_WORKER_STATE_H_
#define SOMA_LAUNCHER_WORKER_STATE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "control/messages.h"
#include "launcher/cgroup_tree.h"
#include "launcher/worker.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace soma::launcher {

// More clients than a server needs; a broken one can't use up our descriptors.
inline constexpr std::size_t kClientsMax = 32;
// Ended sandboxes that nobody reaps are forgotten beyond this, in the order of their ids.
inline constexpr std::size_t kEndedMax = 4096;
// Requests to one monitor that wait for its answer.
inline constexpr std::size_t kPendingMax = 64;
// A monitor ends by itself right after its sandbox. After this it is stuck, and killed.
inline constexpr std::chrono::seconds kMonitorPatience{2};

struct Worker::Client {
  Fd socket;
};

// Somebody waits for a monitor's answer.
struct Worker::Pending {
  ClientId client = 0;
  control::Verb verb = control::Verb::kStatus;
  std::uint32_t sequence = 0;  // the client's own
  Fd connection;               // kAttach: the server's end of its new connection to the monitor
};

struct Worker::Sandbox {
  control::SandboxStatus status;
  std::uint32_t slot = 0;
  std::optional<SlotCgroup> cgroup;
  sys::Process monitor;
  Fd link;  // empty once the sandbox is over
  std::uint32_t next_sequence = 1;
  std::map<std::uint32_t, Pending> pending;
  // kKill is answered when the end is there, not when it is asked for.
  std::vector<Pending> waiting_for_end;
  bool frozen = false;
  // Until kStart is answered: what its reply carries.
  Fd wire;
  Fd connection;
};

// A cgroup that still empties, with the slot that becomes free then.
struct Worker::Draining {
  SlotCgroup cgroup;
  std::uint32_t slot = 0;
  sys::Process monitor;
  std::optional<control::SandboxId> sandbox;  // whose record and socket go last
  MonotonicTime since;
  bool monitor_gone = false;
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_WORKER_STATE_H_
