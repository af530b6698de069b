// SPDX-License-Identifier: Apache-2.0
// ForegroundRun: a sandbox for one command. It is started, gets a copy of the workspace, runs the
// command as its ordinary user with this process's streams, and is destroyed with everything that
// was changed in it, however that goes. It belongs to our connection to its monitor, so it ends
// with us when we are killed.
#ifndef SOMA_SANDBOX_FOREGROUND_RUN_H_
#define SOMA_SANDBOX_FOREGROUND_RUN_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/worker_pool.h"
#include "audit/journal.h"
#include "base/clock.h"
#include "base/result.h"
#include "egress/broker.h"
#include "egress/flushing_recorder.h"
#include "egress/resolver.h"
#include "policy/model.h"
#include "runtime/runtime.h"
#include "sandbox/foreground_task.h"
#include "sandbox/host_signals.h"

namespace soma::sandbox {

// What answers for the command's network. Shared, since its threads may outlast the run: the end of
// the process ends them.
struct ForegroundEgress {
  // Serves `policy` and records to `journal`.
  static Result<std::shared_ptr<ForegroundEgress>> Create(std::shared_ptr<audit::Journal> journal,
                                                          policy::Policy policy,
                                                          egress::Identity identity);

  std::shared_ptr<audit::Journal> journal;
  policy::Policy policy;
  egress::Identity identity;
  // In this order: the workers end while the recorder that they use is there.
  std::optional<egress::FlushingRecorder> recorder;
  std::optional<aio::WorkerPool> workers;
  std::unique_ptr<egress::Resolver> resolver;
};

struct ForegroundOptions {
  std::string launcher_socket;
  std::string level;  // "container" or "emulated"
  std::string sandbox_id;
  std::string template_id;
  std::string user;
  runtime::Profile profile = runtime::Profile::kStrict;
  runtime::Limits limits;

  std::string workspace;  // of the host, absolute
  std::function<bool(std::string_view)> is_hidden;
  std::string directory;     // what it becomes inside, absolute
  std::string subdirectory;  // of it, in which the command starts; may be empty
  std::uint64_t copy_bytes_max = 0;

  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::chrono::milliseconds> time_limit;
  bool terminal = false;

  // Null: nothing gets out.
  std::shared_ptr<ForegroundEgress> egress;
};

struct ForegroundEnd {
  TaskEnd task;
  std::string kernel;        // as the guest says
  std::uint64_t hidden = 0;  // paths that the policy kept out of the copy
  std::uint64_t other = 0;   // sockets, devices and unreadable files that it lacks
};

// Blocks until it is over. A signal before the command runs ends it with 128+N. A process runs one
// at most, and exits soon after.
Result<ForegroundEnd> RunInForeground(const ForegroundOptions& options, HostSignals& signals,
                                      Clock& clock, Random& random);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_RUN_H_
