// SPDX-License-Identifier: Apache-2.0
#include "apps/server_program.h"

#include <spdlog/sinks/stdout_sinks.h>

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

#include "aio/http.h"
#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "aio/worker_pool.h"
#include "api/api.h"
#include "audit/event.h"
#include "audit/journal.h"
#include "audit/recorder.h"
#include "base/error.h"
#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "crypto/random.h"
#include "egress/broker.h"
#include "egress/flushing_recorder.h"
#include "egress/resolver.h"
#include "runtime/fake/fake_runtime.h"
#include "runtime/launched/control_connection.h"
#include "runtime/launched/launched_runtime.h"
#include "runtime/runtime.h"
#include "sandbox/manager.h"
#include "sandbox/sqlite_sandbox_store.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/real_clock.h"
#include "sys/seccomp.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"
#include "tenant/keyring.h"
#include "walls/seccomp_profile.h"

namespace soma::apps {
namespace {

constexpr int kOwnFailure = 125;
// More connections than this wait in the listener's queue.
constexpr std::size_t kConnectionsMax = 20'000;
constexpr std::chrono::seconds kLauncherPatience{10};

class ServerLog final : public Log {
 public:
  ServerLog() : logger_("soma-server", std::make_shared<spdlog::sinks::stderr_sink_st>()) {
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  }
  void Write(LogLevel level, std::string_view line) override {
    switch (level) {
      case LogLevel::kDebug:
        logger_.debug("{}", line);
        break;
      case LogLevel::kInfo:
        logger_.info("{}", line);
        break;
      case LogLevel::kWarning:
        logger_.warn("{}", line);
        break;
      case LogLevel::kError:
        logger_.error("{}", line);
        break;
    }
    logger_.flush();
  }

 private:
  spdlog::logger logger_;
};

class KeyringChecker final : public api::KeyChecker {
 public:
  explicit KeyringChecker(tenant::Keyring& keyring) : keyring_(keyring) {}
  Result<std::string> TenantOf(std::string_view key) override {
    SOMA_ASSIGN(tenant::TenantId tenant, keyring_.Authenticate(key));
    return std::move(tenant.name);
  }

 private:
  tenant::Keyring& keyring_;
};

struct Directories {
  std::string server;
  std::string journal;
  std::string runtime;
};

Result<Directories> FindDirectories() {
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  Directories found{.server = state + "/server", .journal = state + "/journal", .runtime = {}};
  SOMA_ASSIGN(found.runtime, sys::RuntimeDirectory());
  return found;
}

// From here on it can't execute, trace, mount, load or become anything, and it owns nothing but its
// own two directories. A thread keeps the filter that it was made with, so there is none yet.
Status LockDown(const ServerOptions& options, const Directories& directories) {
  SOMA_TRY(sys::MakeServiceDirectory(directories.server));
  SOMA_TRY(sys::MakeServiceDirectory(directories.journal));
#if SOMA_TEST_SWITCHES
  // Only in test builds: the guest is a child of ours, which takes a fork.
  if (options.level == "none") return {};
#endif
  SOMA_TRY_WHILE(sys::BecomeServiceUser(), "becoming the server's user");
  if (options.parent != 0) SOMA_TRY(sys::EndWithParent(options.parent, SIGTERM));
  const int failed = sys::LoadSeccomp(
      walls::ProgramFor(walls::SeccompProfile::kServer, walls::SeccompNotify::kNone));
  if (failed == 0) return {};
  return std::unexpected(Error::FromErrno(failed, "loading the server's seccomp filter"));
}

// "auto" takes the strongest level that the launcher can build; `emulated` only by its name.
Result<control::Level> ChooseLevel(const std::string& name, std::uint8_t levels) {
  const auto has = [levels](control::Level level) {
    return (levels & (1U << static_cast<unsigned>(level))) != 0;
  };
  for (const auto level :
       {control::Level::kMicrovm, control::Level::kContainer, control::Level::kEmulated}) {
    const bool asked = name == control::LevelName(level);
    const bool automatic = name == "auto" && level != control::Level::kEmulated;
    if ((asked || automatic) && has(level)) return level;
    if (asked) {
      return Fail(Errc::kUnimplemented,
                  StrCat("the launcher cannot build level ", name, " on this machine"));
    }
  }
  return Fail(Errc::kInvalidArgument,
              StrCat("no level for \"", EscapeForTerminal(name), "\" on this machine"));
}

Result<Fd> ListenAt(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : ParseInt<std::uint16_t>(std::string_view(where).substr(colon + 1));
  if (!port) return Fail(Errc::kInvalidArgument, StrCat("\"", where, "\" is no ADDRESS:PORT"));
  std::string address = where.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return aio::ListenTcp(address, *port);
}

class Server {
 public:
  Server(const ServerOptions& options, Directories directories, Log& log)
      : options_(options), log_(log), directories_(std::move(directories)) {}

  aio::Job Start() {
    const Status started = co_await TryStart();
    if (!started) {
      log_.Error(started.error().message());
      exit_code_ = kOwnFailure;
      loop_.Stop();
    }
  }

  int Run() {
    const Status prepared = Prepare();
    if (!prepared) {
      log_.Error(prepared.error().message());
      return kOwnFailure;
    }
    loop_.OnTermination([this] { loop_.Stop(); });
    loop_.SpawnRoot(Start());
    loop_.Run();
    RecordServer("stopped");
    const Status closed = journal_->Close();
    if (!closed) log_.Error(closed.error().message());
    return exit_code_;
  }

 private:
  Status Prepare() {
    SOMA_ASSIGN(journal_, audit::Journal::Open({.directory = directories_.journal,
                                                .run = crypto::RandomHex(random_, 8),
                                                .clock = &clock_}));
    recorder_ = std::make_unique<egress::FlushingRecorder>(*journal_, workers_);
    SOMA_ASSIGN(auto keyring, tenant::Keyring::Open(directories_.server + "/keys.db", *recorder_,
                                                    clock_, random_));
    keyring_ = std::make_unique<tenant::Keyring>(std::move(keyring));
    keys_ = std::make_unique<KeyringChecker>(*keyring_);
    SOMA_ASSIGN(auto store,
                sandbox::SqliteSandboxStore::Open(directories_.server + "/sandboxes.db"));
    store_ = std::make_unique<sandbox::SqliteSandboxStore>(std::move(store));
    return {};
  }

  void RecordServer(std::string_view what) {
    audit::Event event;
    event.kind = audit::EventKind::kServer;
    event.subject = "soma-server";
    event.fields = {{"what", std::string(what)}};
    if (runtime_) event.fields.emplace_back("level", std::string(runtime_->level()));
    (void)recorder_->Record(event, audit::Durability::kSoon);
  }

  // The launcher may be starting, or its worker may be on its way back.
  aio::Task<runtime::ControlConnection::Answer> Greet() {
    for (int tries_left = 100;; --tries_left) {
      auto hello = co_await launcher_->Ask({.verb = control::Verb::kHello}, kLauncherPatience);
      if (hello || tries_left == 0 || hello.error().code() != Errc::kUnavailable) co_return hello;
      co_await aio::Sleep(loop_, std::chrono::milliseconds(100));
    }
  }

  aio::Task<void> MakeRuntime() {
#if SOMA_TEST_SWITCHES
    if (options_.level == "none") {
      // Only in test builds: the guest as a plain child, no walls.
      SOMA_CO_ASSIGN(const std::string programs, sys::ProgramDirectory());
      runtime_ = std::make_unique<runtime::FakeRuntime>(loop_, programs + "/soma-guest");
      co_return Status();
    }
#endif
    launcher_ = std::make_shared<runtime::Launcher>(loop_, directories_.runtime + "/launcher.sock");
    SOMA_CO_ASSIGN(const auto hello, co_await Greet());
    SOMA_CO_ASSIGN(const control::Level level,
                   ChooseLevel(options_.level, hello.reply.launcher.levels));
    runtime_ = std::make_unique<runtime::LaunchedRuntime>(launcher_, level);
    co_return Status();
  }

  aio::Task<std::vector<Fd>> Listeners() {
    std::vector<Fd> listeners;
    if (launcher_) {
      SOMA_CO_ASSIGN(listeners, co_await launcher_->Sockets());
    }
    if (listeners.empty()) {
      SOMA_CO_ASSIGN(Fd own, ListenAt(options_.listen));
      listeners.push_back(std::move(own));
    }
    co_return listeners;
  }

  aio::Task<void> TryStart() {
    SOMA_CO_TRY(co_await MakeRuntime());
    SOMA_CO_ASSIGN(resolver_, egress::MakeResolver());
    egress_.emplace(egress::Services{
        .loop = loop_, .workers = workers_, .recorder = *recorder_, .resolver = *resolver_});
    sandbox::ManagerOptions manager_options;
    manager_options.sandboxes_max = options_.sandboxes_max;
    manager_options.limits.memory_bytes_max = options_.memory_mib << 20;
    manager_options.limits.disk_bytes_max = options_.disk_mib << 20;
    manager_options.default_user = options_.default_user;
    manager_ =
        std::make_unique<sandbox::SandboxManager>(sandbox::ManagerParts{.loop = loop_,
                                                                        .clock = clock_,
                                                                        .random = random_,
                                                                        .runtime = *runtime_,
                                                                        .store = *store_,
                                                                        .recorder = *recorder_,
                                                                        .egress = &*egress_},
                                                  manager_options);
    SOMA_CO_TRY(co_await manager_->Recover());
    api_ = std::make_unique<api::Api>(api::ApiParts{.manager = *manager_, .keys = *keys_},
                                      options_.api);
    SOMA_CO_ASSIGN(auto listeners, co_await Listeners());
    for (Fd& listener : listeners) {
      const auto port = aio::LocalPort(listener);
      log_.Info(StrCat("level ", runtime_->level(), ", serving port ", port.value_or(0)));
      acceptors_.push_back(std::make_unique<aio::Acceptor>(loop_, std::move(listener)));
      connections_.Spawn(AcceptAll(*acceptors_.back()));
    }
    RecordServer("serving");
    co_return Status();
  }

  aio::Job AcceptAll(aio::Acceptor& acceptor) {
    for (;;) {
      auto socket = co_await acceptor.Accept();
      if (!socket) {
        log_.Error(socket.error().message());
        exit_code_ = kOwnFailure;
        loop_.Stop();
        co_return;
      }
      while (connections_.size() > kConnectionsMax) {
        co_await aio::Sleep(loop_, std::chrono::milliseconds(20));
      }
      connections_.Spawn(
          aio::ServeHttp(loop_, aio::MakeSocketStream(loop_, *std::move(socket)), *api_));
    }
  }

  const ServerOptions& options_;
  Log& log_;
  Directories directories_;
  int exit_code_ = 0;
  aio::Loop loop_;
  sys::RealClock clock_;
  sys::RealRandom random_;
  std::unique_ptr<audit::Journal> journal_;
  aio::WorkerPool workers_;
  std::unique_ptr<egress::FlushingRecorder> recorder_;
  std::unique_ptr<egress::Resolver> resolver_;
  std::optional<egress::Services> egress_;
  std::unique_ptr<tenant::Keyring> keyring_;
  std::unique_ptr<KeyringChecker> keys_;
  std::unique_ptr<sandbox::SqliteSandboxStore> store_;
  std::shared_ptr<runtime::Launcher> launcher_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<sandbox::SandboxManager> manager_;
  std::unique_ptr<api::Api> api_;
  aio::TaskGroup connections_{loop_};
  std::vector<std::unique_ptr<aio::Acceptor>> acceptors_;
};

}  // namespace

int RunServer(const ServerOptions& options) {
  egress::ForgetSearchDomains();
  ServerLog log;
  auto directories = FindDirectories();
  const Status locked =
      directories ? LockDown(options, *directories) : Status(std::unexpected(directories.error()));
  if (!locked) {
    log.Error(locked.error().message());
    return kOwnFailure;
  }
  // Not destroyed: the coroutines that still run, and what they run on, know each other in both
  // directions, and the end of the process frees them all. Sandboxes go on without us.
  auto* server = new Server(options, *std::move(directories), log);
  return server->Run();
}

}  // namespace soma::apps
