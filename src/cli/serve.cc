// SPDX-License-Identifier: Apache-2.0
// soma serve: a launcher of its own and a server, until they are told to stop; what a person on one
// machine needs to point E2B's SDKs at.
//
// The server may die at any moment and is started again: sandboxes go on meanwhile, and clients
// queue at the socket that the launcher holds. When the launcher dies everything ends.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/journal.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/programs.h"
#include "probe/report.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/process.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"
#include "tenant/keyring.h"

namespace soma::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kStartPatience{60};
// A server that dies faster than this again and again is broken, not unlucky.
constexpr seconds kShortLife{2};
constexpr int kShortLivesMax = 5;

struct ServeOptions {
  std::string listen = "127.0.0.1:3000";
  std::string level = "auto";
  std::string domain;
  std::vector<std::string> hosts;
  std::vector<std::string> origins;
};

struct Places {
  std::string server;
  std::string journal;
  std::string runtime;
};

// Set by the handler of SIGTERM and SIGINT; it wakes poll by EINTR.
volatile std::sig_atomic_t stop_asked = 0;
void OnStop(int /*signal*/) { stop_asked = 1; }

Result<Places> FindPlaces() {
  Places places;
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  places.server = state + "/server";
  places.journal = state + "/journal";
  SOMA_ASSIGN(places.runtime, sys::RuntimeDirectory());
  SOMA_TRY(sys::MakeServiceDirectory(places.server));
  SOMA_TRY(sys::MakeServiceDirectory(places.journal));
  SOMA_TRY(sys::MakeDirectories(places.runtime, 0700));
  return places;
}

// The key that this machine's `soma serve` prints each time. It is kept in a file that only its
// owner can read, beside a database that holds nothing but hashes.
Result<std::string> ServeKey(const Context& context, const Places& places) {
  const std::string path = places.server + "/serve.key";
  SOMA_ASSIGN(const auto actor, sys::ActAsServiceUser::Begin());
  SOMA_ASSIGN(auto journal,
              audit::Journal::Open(
                  {.directory = places.journal, .run = "soma-serve", .clock = &context.clock}));
  SOMA_ASSIGN(auto keyring, tenant::Keyring::Open(places.server + "/keys.db", *journal,
                                                  context.clock, context.random));
  const auto kept = sys::ReadWholeFile(path, 256);
  if (kept && keyring.Authenticate(*kept)) return *kept;
  SOMA_ASSIGN(const tenant::NewKey made, keyring.CreateKey({"default"}, "soma serve"));
  SOMA_TRY(sys::WriteFileAtomically(path, AsBytes(made.key), 0600));
  SOMA_TRY(journal->Close());
  return made.key;
}

// Both end when this process does, however that goes: the launcher takes every sandbox along.
Result<sys::Process> StartLauncher(const ServeOptions& options) {
  std::vector<std::string> arguments = {"--listen", options.listen, "--parent", StrCat(::getpid())};
  if (sys::HasServiceUser()) {
    arguments.insert(arguments.end(), {"--server-user", StrCat(sys::kServiceUser)});
  }
  return StartBeside({.name = "soma-launcher", .arguments = std::move(arguments)});
}

Result<sys::Process> StartServer(const ServeOptions& options) {
  std::vector<std::string> arguments = {"--listen",    options.listen, "--level",
                                        options.level, "--parent",     StrCat(::getpid())};
  if (!options.domain.empty()) {
    arguments.insert(arguments.end(), {"--domain", options.domain});
  }
  for (const std::string& host : options.hosts) arguments.insert(arguments.end(), {"--host", host});
  for (const std::string& origin : options.origins) {
    arguments.insert(arguments.end(), {"--origin", origin});
  }
  return StartBeside({.name = "soma-server", .arguments = std::move(arguments)});
}

// One GET /health; the connection waits in the launcher's queue until a server takes it.
bool IsHealthy(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  const auto port = ParseInt<std::uint16_t>(std::string_view(listen).substr(colon + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port.value_or(0));
  if (::inet_pton(AF_INET, listen.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return false;
  }
  constexpr std::string_view kRequest =
      "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::send(socket.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) return false;
  char answer[16] = {};
  return ::recv(socket.get(), answer, sizeof answer, 0) > 0 &&
         std::string_view(answer, 12) == "HTTP/1.1 200";
}

Status WaitForServer(const std::string& listen, const sys::Process& server,
                     const sys::Process& launcher) {
  const auto end = steady_clock::now() + kStartPatience;
  while (!IsHealthy(listen)) {
    if (EndsWithin(server, milliseconds(20))) {
      return Fail(Errc::kUnavailable, "soma-server has ended; it said why above");
    }
    if (EndsWithin(launcher, milliseconds(0))) {
      return Fail(Errc::kUnavailable, "soma-launcher has ended; it said why above");
    }
    if (stop_asked != 0) return Fail(Errc::kCancelled, "stopped");
    if (steady_clock::now() > end) return Fail(Errc::kDeadlineExceeded, "no server answers");
  }
  return {};
}

// Until a stop is asked for or the launcher ends.
Status Watch(const ServeOptions& options, sys::Process& launcher, sys::Process& server) {
  int short_lives = 0;
  auto started = steady_clock::now();
  while (stop_asked == 0) {
    pollfd watched[2] = {{.fd = launcher.pidfd().get(), .events = POLLIN, .revents = 0},
                         {.fd = server.pidfd().get(), .events = POLLIN, .revents = 0}};
    if (::poll(watched, 2, -1) < 0) continue;
    if (watched[0].revents != 0) return Fail(Errc::kUnavailable, "soma-launcher has ended");
    if (watched[1].revents == 0) continue;
    (void)server.Wait();
    if (stop_asked != 0) break;
    short_lives = steady_clock::now() - started < kShortLife ? short_lives + 1 : 0;
    if (short_lives > kShortLivesMax) return Fail(Errc::kUnavailable, "soma-server keeps ending");
    Complain("soma-server has ended and is started again");
    started = steady_clock::now();
    SOMA_ASSIGN(server, StartServer(options));
  }
  return {};
}

void PrintReady(const ServeOptions& options, const std::string& key) {
  const std::string url = StrCat("http://", options.listen);
  PrintLine(StrCat("export E2B_API_URL=", url));
  PrintLine(StrCat("export E2B_SANDBOX_URL=", url));
  PrintLine(StrCat("export E2B_API_KEY=", key));
  Complain("ready; the lines above are for the shell in which your agent runs. Ctrl-C ends all");
}

// The printed lines name the port, so it can't be left to the kernel.
Status CheckListen(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : ParseInt<std::uint16_t>(std::string_view(listen).substr(colon + 1));
  if (port.value_or(0) != 0) return {};
  return Fail(Errc::kInvalidArgument, StrCat("--listen ", EscapeForTerminal(listen),
                                             ": ADDRESS:PORT with a port of 1 to 65535 is needed"));
}

// What the launcher would refuse in the end, and with what the machine was found to be.
Status CheckLevel(const std::string& level) {
  constexpr std::array<std::string_view, 4> kLevels = {"auto", "container", "emulated", "microvm"};
  if (std::ranges::find(kLevels, level) == kLevels.end()) {
    return Fail(Errc::kInvalidArgument,
                StrCat("--level ", EscapeForTerminal(level),
                       ": there are auto, container, emulated and microvm"));
  }
  if (level != "microvm") return {};
  const probe::Row kvm = probe::ProbeKvm();
  if (kvm.finding == probe::Finding::kProven) return {};
  return Fail(Errc::kFailedPrecondition,
              StrCat("--level microvm: this machine does not prove it: ", kvm.evidence,
                     "; what would help: ", kvm.remedy,
                     ". --level emulated runs the same guest on a software processor; it is not a "
                     "hardware boundary"));
}

Status Serve(const Context& context, const ServeOptions& options) {
  SOMA_TRY(CheckListen(options.listen));
  SOMA_TRY(CheckLevel(options.level));
  SOMA_ASSIGN(const Places places, FindPlaces());
  SOMA_ASSIGN(const std::string key, ServeKey(context, places));
  struct sigaction action{};
  action.sa_handler = OnStop;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  SOMA_ASSIGN(sys::Process launcher, StartLauncher(options));
  Status status = WaitForLauncher(places.runtime + "/launcher.sock", launcher);
  if (status) {
    auto server = StartServer(options);
    if (!server) status = std::unexpected(server.error());
    if (server) {
      status = WaitForServer(options.listen, *server, launcher);
      if (status) {
        PrintReady(options, key);
        status = Watch(options, launcher, *server);
      }
      StopProgram(*server);
    }
  }
  StopProgram(launcher);
  if (!status && stop_asked != 0) return {};
  return status;
}

}  // namespace

void AddServe(CLI::App& tools, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = AddCommand(tools, "serve", "Serve sandboxes to E2B's SDKs on this machine",
                                 "  soma serve --listen 127.0.0.1:3000 --level container");
  command->add_option("--listen", options->listen, "ADDRESS:PORT (default 127.0.0.1:3000)");
  command->add_option("--level", options->level,
                      "container, emulated, microvm or auto (the strongest that is proven)");
  command->add_option("--domain", options->domain,
                      "domain below which <port>-<sandbox> hosts are; told to SDKs");
  command->add_option("--host", options->hosts, "another Host that may be asked for");
  command->add_option("--origin", options->origins, "an Origin that web pages may call from");
  command->callback([options, &context] {
    const Status done = Serve(context, *options);
    if (!done) FailWith(context, done.error());
  });
}

}  // namespace soma::cli
