// SPDX-License-Identifier: Apache-2.0
// A foreground run: a sandbox for one command. It is started, gets a copy of the workspace, runs
// the command as its ordinary user with this process's streams, and is destroyed with everything
// that was changed in it, however that goes.
//
// Two halves. The caller's keeps what the caller may do: it reads the workspace, connects to the
// launcher, takes signals, sets the terminal's mode; it reads no byte of the guest's. The other, a
// child that gives all of that up before it begins (sandbox/foreground_attendant.h), speaks with
// the guest and answers for its network. The sandbox belongs to the child's connection to its
// monitor and the child to its parent, so everything ends with the caller.
#ifndef SOMA_SANDBOX_FOREGROUND_RUN_H_
#define SOMA_SANDBOX_FOREGROUND_RUN_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "egress/broker.h"
#include "policy/model.h"
#include "runtime/runtime.h"
#include "sandbox/foreground_end.h"
#include "sandbox/host_signals.h"

namespace soma::sandbox {

struct ForegroundOptions {
  std::string launcher_socket;  // the path
  std::string level;            // "container" or "emulated"
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

  // What may get out, recorded as `identity` in the journal there. The directory exists, and is the
  // service's user's where root has one.
  policy::Policy policy;
  egress::Identity identity;
  std::string journal_directory;
  // Called for each refusal as it happens, from RunInForeground's own thread.
  std::function<void(const RefusedConnect&)> on_refused;
};

// Blocks until it is over. A signal before the command runs ends it with 128+N. For a process with
// one thread.
Result<ForegroundEnd> RunInForeground(const ForegroundOptions& options, HostSignals& signals,
                                      Clock& clock, Random& random);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_FOREGROUND_RUN_H_
