// SPDX-License-Identifier: Apache-2.0
// soma-launcher: starts sandboxes for a server that is not trusted to.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/ids.h"
#include "launcher/lock_down.h"
#include "launcher/log.h"
#include "launcher/parent.h"
#include "launcher/paths.h"
#include "launcher/worker.h"
#include "sys/chroot.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/real_clock.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"

namespace {

using soma::Errc;
using soma::Fail;
using soma::Fd;
using soma::ParseInt;
using soma::Result;
using soma::Status;
using soma::StrCat;
using soma::launcher::Paths;

constexpr int kOwnFailure = 125;
constexpr std::size_t kHttpListenersMax = soma::control::kDescriptorsMax;

constexpr std::string_view kHelp =
    "soma-launcher [OPTION]...\n"
    "Starts sandboxes for soma-server, which is not trusted to. Runs until SIGTERM.\n\n"
    "  --listen ADDRESS:PORT  keep a listening socket for the server; may be repeated\n"
    "  --server-user USER     the only other user that may give orders (name or number;\n"
    "                         default: the launcher's own)\n"
    "  --sandboxes-max N      refuse more at the same time (default 256)\n"
    "  --ready N              keep so many prepared (default 2)\n"
    "  --parent PID           end, with every sandbox, when this process ends, which started it\n"
    "  --idle-exit SECONDS    end after so long without a client and a sandbox\n"
    "  --help                 this text\n\n"
    "State: SOMA_STATE_DIR and SOMA_RUNTIME_DIR, else /var/lib/soma and /run/soma.\n";

struct Options {
  std::vector<std::string> listen;
  std::uint32_t server_uid = geteuid();
  std::size_t sandboxes_max = 256;
  std::size_t ready = 2;
  pid_t parent = 0;             // ends with this process, which started it; 0: with nobody
  std::uint32_t idle_exit = 0;  // seconds; 0: never
  std::optional<std::size_t>
      worker_listeners;  // this is the worker; so many HTTP sockets came along
  bool help = false;
};

Result<std::uint32_t> ParseUser(const std::string& text) {
  if (const auto number = ParseInt<std::uint32_t>(text)) return *number;
  // Read here: a static program has no name services.
  constexpr std::uint64_t kPasswdBytesMax = 16UL << 20;
  SOMA_ASSIGN(const std::string accounts, soma::sys::ReadWholeFile("/etc/passwd", kPasswdBytesMax));
  for (const std::string_view line : soma::Split(accounts, '\n')) {
    const auto fields = soma::Split(line, ':');
    if (fields.size() < 4 || fields[0] != text) continue;
    if (const auto uid = ParseInt<std::uint32_t>(fields[2])) return *uid;
  }
  return Fail(Errc::kInvalidArgument, StrCat("there is no user ", soma::EscapeForTerminal(text)));
}

Status ParseOne(const std::string& name, const std::string& value, Options& options) {
  if (name == "--listen") {
    if (options.listen.size() == kHttpListenersMax) {
      return Fail(Errc::kInvalidArgument, "too many --listen");
    }
    options.listen.push_back(value);
    return {};
  }
  if (name == "--server-user") {
    SOMA_ASSIGN(options.server_uid, ParseUser(value));
    return {};
  }
  const auto number = ParseInt<std::uint32_t>(value);
  if (!number) {
    return Fail(Errc::kInvalidArgument, StrCat(name, " needs a number"));
  }
  if (name == "--sandboxes-max" && *number <= soma::launcher::kSlotsMax) {
    options.sandboxes_max = *number;
  } else if (name == "--ready" && *number <= soma::control::kAllocateMax) {
    options.ready = *number;
  } else if (name == "--parent") {
    options.parent = static_cast<pid_t>(*number);
  } else if (name == "--idle-exit") {
    options.idle_exit = *number;
  } else if (name == "--worker" && *number <= kHttpListenersMax) {
    options.worker_listeners = *number;
  } else {
    return Fail(Errc::kInvalidArgument, StrCat(name, " is too large"));
  }
  return {};
}

Result<Options> Parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--help") {
      options.help = true;
      continue;
    }
    const bool known = name == "--listen" || name == "--server-user" || name == "--sandboxes-max" ||
                       name == "--ready" || name == "--parent" || name == "--idle-exit" ||
                       name == "--worker";
    if (!known) {
      return Fail(Errc::kInvalidArgument, StrCat("unknown option ", soma::EscapeForTerminal(name)));
    }
    if (i + 1 == arguments.size()) {
      return Fail(Errc::kInvalidArgument, StrCat(name, " needs a value"));
    }
    SOMA_TRY(ParseOne(name, arguments[++i], options));
  }
  return options;
}

Result<std::string> OwnProgram() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0 || size == sizeof path) {
    return Fail(Errc::kInternal, "/proc/self/exe can't be read");
  }
  return std::string(path, static_cast<std::size_t>(size));
}

Result<Paths> FindPaths() {
  SOMA_ASSIGN(const std::string state, soma::sys::StateDirectory());
  SOMA_ASSIGN(const std::string runtime, soma::sys::RuntimeDirectory());
  return Paths{.state = state + "/launcher", .runtime = runtime};
}

// A sandbox costs a dozen descriptors here and in its monitor; take what there is.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status RunWorker(const Options& options, const std::string& program) {
  // Without its parent there is nobody to take its place; monitors live on until their leases end.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "soma-worker");
  RaiseDescriptorLimit();
  SOMA_TRY(soma::launcher::LockDownWorker());
  soma::launcher::WorkerOptions worker;
  SOMA_ASSIGN(worker.paths, FindPaths());
  worker.programs = program.substr(0, program.rfind('/'));
  worker.server_uid = options.server_uid;
  worker.sandboxes_max = options.sandboxes_max;
  worker.ready_wanted = options.ready;
  worker.idle_exit = std::chrono::seconds(options.idle_exit);
  if (options.idle_exit != 0) {
    fcntl(soma::launcher::kWorkerGate, F_SETFD, FD_CLOEXEC);
    worker.gate = Fd(soma::launcher::kWorkerGate);
  }
  using soma::control::Regime;
  const bool own_server = options.server_uid == geteuid();
  worker.regime = geteuid() != 0 ? Regime::kRootless
                  : own_server   ? Regime::kPrivateRoot
                                 : Regime::kSystem;
  const auto adopt = [](int number) {
    fcntl(number, F_SETFD, FD_CLOEXEC);
    return Fd(number);
  };
  worker.listener = adopt(soma::launcher::kWorkerListener);
  worker.stop = adopt(soma::launcher::kWorkerStop);
  for (std::size_t i = 0; i < *options.worker_listeners; ++i) {
    worker.http.push_back(adopt(soma::launcher::kWorkerFirstHttp + static_cast<int>(i)));
  }
  soma::sys::RealClock clock;
  SOMA_ASSIGN(const auto running, soma::launcher::Worker::Create(std::move(worker), clock));
  return running->Run();
}

// Only what is ours: where the state is, and in a test build which wall is off.
std::vector<std::string> WorkerEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("SOMA_")) environment.emplace_back(*variable);
  }
  return environment;
}

Status Run(const Options& options, const std::vector<std::string>& arguments) {
  if (!options.worker_listeners && geteuid() == 0 && soma::sys::InChroot()) {
    return Fail(
        Errc::kFailedPrecondition,
        StrCat("no container or virtual machine can be started: ", soma::sys::kChrootRemedy));
  }
  SOMA_ASSIGN(const std::string program, OwnProgram());
  if (options.worker_listeners) return RunWorker(options, program);
  if (options.parent != 0) SOMA_TRY(soma::sys::EndWithParent(options.parent, SIGTERM));
  soma::launcher::ParentOptions parent;
  SOMA_ASSIGN(parent.paths, FindPaths());
  parent.program = program;
  parent.server_uid = options.server_uid;
  if (options.idle_exit != 0) parent.gate = soma::sys::RunGatePath(parent.paths.runtime);
  parent.listen = options.listen;
  parent.worker_arguments = {"soma-launcher"};
  parent.worker_arguments.insert(parent.worker_arguments.end(), arguments.begin(), arguments.end());
  parent.worker_arguments.emplace_back("--worker");
  parent.worker_arguments.push_back(StrCat(options.listen.size()));
  parent.worker_environment = WorkerEnvironment();
  return soma::launcher::RunParent(parent);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto options = Parse(arguments);
  if (options && options->help) {
    std::fwrite(kHelp.data(), 1, kHelp.size(), stdout);
    return 0;
  }
  const Status ran = options ? Run(*options, arguments) : Status(std::unexpected(options.error()));
  if (ran) return 0;
  soma::launcher::Log(ran.error().message());
  return kOwnFailure;
}
