// SPDX-License-Identifier: Apache-2.0
#include "cli/programs.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "runtime/launched/control_connection.h"
#include "sys/child_process.h"
#include "sys/packet_listener.h"
#include "sys/process.h"
#include "sys/soma_paths.h"

namespace soma::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kStartPatience{60};
constexpr std::chrono::seconds kStopPatience{30};

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

// The socket's place is the same for every launcher of this user: one that runs already is not the
// one that was started here, which is about to say so and end.
bool AnswersAt(const std::string& socket, const sys::Process& launcher) {
  const auto connection = runtime::ConnectControl(socket);
  if (!connection) return false;
  const auto peer = sys::PeerOf(*connection);
  return peer && peer->pid == launcher.pid();
}

}  // namespace

Result<sys::Process> StartBeside(ProgramStart start) {
  SOMA_ASSIGN(const std::string programs, sys::ProgramDirectory());
  sys::ProgramOptions options{.path = StrCat(programs, "/", start.name),
                              .arguments = std::move(start.arguments),
                              .environment = OwnEnvironment(),
                              .descriptors = {}};
  options.arguments.insert(options.arguments.begin(), start.name);
  if (start.detached_to >= 0) {
    options.own_session = true;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      options.descriptors.push_back({.fd = start.detached_to, .inside = stream});
    }
  }
  return sys::StartProgram(options);
}

bool EndsWithin(const sys::Process& process, milliseconds time) {
  pollfd watched{.fd = process.pidfd().get(), .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, static_cast<int>(time.count())) == 1;
}

void StopProgram(sys::Process& process) {
  process.Signal(SIGTERM);
  if (!EndsWithin(process, kStopPatience)) process.Signal(SIGKILL);
  (void)process.Wait();
}

Status WaitForLauncher(const std::string& socket, const sys::Process& launcher) {
  const auto end = steady_clock::now() + kStartPatience;
  while (!AnswersAt(socket, launcher)) {
    if (EndsWithin(launcher, milliseconds(5))) {
      return Fail(Errc::kUnavailable, "soma-launcher has ended; it said why");
    }
    if (steady_clock::now() > end) return Fail(Errc::kDeadlineExceeded, "no launcher appears");
  }
  return {};
}

}  // namespace soma::cli
