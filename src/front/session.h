// SPDX-License-Identifier: Apache-2.0
// Session: one running task from launch to end: answers its supervisor, passes signals and terminal
// bytes, keeps the time limit. One thread, one poll loop, in the process of `soma run`.
#ifndef SOMA_FRONT_SESSION_H_
#define SOMA_FRONT_SESSION_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "front/limit_watch.h"
#include "walls/denied.h"
#include "walls/judge.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::front {

struct SessionInputs {
  const walls::WallPlan& plan;
  const walls::LaunchOptions& options;
  walls::Judge& judge;
  Clock& clock;
  std::optional<std::chrono::milliseconds> time_limit;
  // Called for refusals as they come, in order; equal ones in a row come once, counted.
  std::function<void(const walls::Denied&)> on_refusal;
  // Called between the launch and the first instruction of the command, with the sockets of a
  // captured network. An error stops the run: what can't be recorded or answered for does not
  // start.
  std::function<Status(walls::CaptureSockets)> before_start;
};

struct SessionEnd {
  walls::TaskEnd end;
  LimitHits hits;
  std::uint64_t refusals_dropped = 0;
};

// Fails only when the task could not be launched; nothing is left behind then.
Result<SessionEnd> RunSession(const SessionInputs& inputs);

}  // namespace soma::front

#endif  // SOMA_FRONT_SESSION_H_
