// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_attendant.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"
#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/journal.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "egress/broker.h"
#include "egress/flushing_recorder.h"
#include "egress/resolver.h"
#include "runtime/guest_link.h"
#include "runtime/launched/launched_runtime.h"
#include "runtime/runtime.h"
#include "sandbox/copy_in.h"
#include "sandbox/egress_gate.h"
#include "sandbox/foreground_end.h"
#include "sandbox/foreground_message.h"
#include "sandbox/foreground_run.h"
#include "sandbox/foreground_task.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "sys/seccomp.h"
#include "sys/service_user.h"
#include "walls/seccomp_profile.h"
#include "wire/message.h"

namespace soma::sandbox {
namespace {

using std::chrono::seconds;

constexpr seconds kLease{60};
constexpr seconds kRenewEvery{15};
// An emulated machine boots in seconds; beside other work in many.
constexpr seconds kAgentPatience{180};
constexpr seconds kInitPatience{60};
// The caller does nothing slow but reading the workspace, piece by piece.
constexpr seconds kCallerPatience{60};
// For an agent that ends a command at its limit and has output of it to deliver.
constexpr seconds kLimitGrace{5};

// Tells the caller what is refused, beside writing it down. Dropped when the caller is behind: it
// is for a person to read, the record has it all.
class RefusalTap final : public audit::Recorder {
 public:
  RefusalTap(audit::Recorder& recorder, const Fd& control)
      : recorder_(recorder), control_(control) {}

  Status Record(const audit::Event& event, audit::Durability durability) override {
    if (event.verdict == audit::Verdict::kDeny) {
      (void)sys::SendPacket(control_, Encode(ToCaller(RefusedOf(event))));
    }
    return recorder_.Record(event, durability);
  }

 private:
  static RefusedConnect RefusedOf(const audit::Event& event) {
    RefusedConnect refused{
        .what = event.subject, .object = event.object, .rule = event.rule, .remedy = event.remedy};
    for (const auto& [name, value] : event.fields) {
      if (name == "origin") refused.rule += StrCat(" (", value, ")");
      // Recorded are the 1st, 2nd, 4th, 8th, … time (egress/broker.h): half of them are new.
      if (name == "count") refused.times = ParseInt<std::uint64_t>(value).value_or(2) / 2;
    }
    return refused;
  }

  audit::Recorder& recorder_;
  const Fd& control_;
};

// The caller's descriptors and privileges are gone after it. A thread keeps the filter that it was
// made with, so there is none yet.
Status LockDown(const AttendantDescriptors& descriptors, pid_t caller) {
  std::array kept = {descriptors.control.get(), descriptors.copy.get(), descriptors.journal.get()};
  std::ranges::sort(kept);
  constexpr unsigned kFirst = 3;  // behind the standard streams
  if (const int failed = sys::CloseFromBut(kFirst, kept); failed != 0) {
    return std::unexpected(Error::FromErrno(failed, "close_range"));
  }
  (void)::prctl(PR_SET_NAME, "soma-attendant");
  SOMA_TRY_WHILE(sys::BecomeServiceUser(), "becoming the attendant's user");
  SOMA_TRY(sys::EndWithParent(caller, SIGKILL));
  const int failed = sys::LoadSeccomp(
      walls::ProgramFor(walls::SeccompProfile::kServer, walls::SeccompNotify::kNone));
  if (failed == 0) return {};
  return std::unexpected(Error::FromErrno(failed, "loading the attendant's seccomp filter"));
}

class Attendant {
 public:
  Attendant(const ForegroundOptions& options, AttendantDescriptors descriptors, Clock& clock,
            Random& random)
      : options_(options),
        control_(std::move(descriptors.control)),
        copy_(std::move(descriptors.copy)),
        clock_(clock),
        random_(random),
        journal_directory_(std::move(descriptors.journal)) {}

  Result<ForegroundEnd> Run() {
    SOMA_TRY(Prepare());
    loop_.SpawnRoot(HearCaller());
    loop_.SpawnRoot(Drive());
    loop_.Run();
    // Closing it makes what was recorded durable; an end that was not recorded is no good end.
    if (const Status closed = journal_->Close(); !closed && result_) {
      result_ = std::unexpected(closed.error());
    }
    if (interrupted_by_ == 0) return std::move(result_);
    ForegroundEnd end;
    end.task = {.exit_code = 128 + interrupted_by_,
                .started = false,
                .timed_out = false,
                .how = StrCat("interrupted by signal ", interrupted_by_)};
    return end;
  }

 private:
  // Threads begin here.
  Status Prepare() {
    SOMA_ASSIGN(journal_, audit::Journal::Open(
                              {.directory = StrCat("/proc/self/fd/", journal_directory_.get()),
                               .run = options_.identity.run,
                               .clock = &clock_}));
    egress::ForgetSearchDomains();
    workers_.emplace();
    recorder_.emplace(*journal_, *workers_);
    tap_.emplace(*recorder_, control_);
    SOMA_ASSIGN(resolver_, egress::MakeResolver());
    return {};
  }

  void Say(const ToCaller& message) { (void)sys::SendPacket(control_, Encode(message)); }

  aio::Job Drive() {
    result_ = co_await Whole();
    if (handle_) {
      if (link_) link_->Close("the run is over");
      const Status stopped = co_await handle_->Stop();
      if (!stopped && result_) result_ = std::unexpected(stopped.error());
      if (result_) result_->hits = handle_->Hits();
    }
    loop_.Stop();
  }

  aio::Task<ForegroundEnd> Whole() {
    SOMA_CO_TRY(co_await StartSandbox());
    ForegroundEnd end;
    SOMA_CO_ASSIGN(end.kernel, co_await Greet());
    const Status copied = co_await CopyIn(loop_, *link_, copy_, options_.directory, options_.user);
    copy_.Reset();
    SOMA_CO_TRY(copied);
    task_ = std::make_unique<ForegroundTask>(loop_, *link_, StartMessage(),
                                             [this] { return AskForRawTerminal(); });
    if (options_.time_limit) loop_.SpawnRoot(EndAtLimit(*options_.time_limit + kLimitGrace));
    auto task = co_await task_->Run();
    if (!task && limit_passed_) {
      task = TaskEnd{.exit_code = 128 + SIGKILL,
                     .started = true,
                     .timed_out = true,
                     .how = "ended with its sandbox, whose agent had not ended it in time"};
    }
    SOMA_CO_ASSIGN(end.task, std::move(task));
    co_return end;
  }

  // The agent ends a command at its limit. It is inside, and may be the command's by then.
  aio::Job EndAtLimit(std::chrono::milliseconds from_now) {
    co_await aio::Sleep(loop_, from_now);
    limit_passed_ = true;
    (void)co_await handle_->Stop();
    link_->Close("the time limit was reached");
  }

  // Through the caller, whom the launcher knows.
  aio::Task<Fd> AskForLauncher() {
    launcher_answer_.reset();
    Say(WantLauncher{});
    while (!launcher_answer_) {
      if (!co_await heard_.Wait(kCallerPatience)) {
        co_return Fail(Errc::kDeadlineExceeded, "the caller gives no launcher");
      }
    }
    Result<Fd> answer = std::move(*launcher_answer_);
    launcher_answer_.reset();
    co_return answer;
  }

  aio::Task<void> AskForRawTerminal() {
    Say(TaskStarted{});
    while (!terminal_ready_) {
      if (!co_await heard_.Wait(kCallerPatience)) {
        co_return Fail(Errc::kDeadlineExceeded, "the caller gives no terminal");
      }
    }
    co_return Status();
  }

  aio::Task<void> StartSandbox() {
    const auto level =
        options_.level == "emulated" ? control::Level::kEmulated : control::Level::kContainer;
    runtime_ = std::make_unique<runtime::LaunchedRuntime>(
        std::make_shared<runtime::Launcher>(loop_, [this] { return AskForLauncher(); }), level);
    runtime::StartRequest start;
    start.sandbox_id = options_.sandbox_id;
    start.template_id = options_.template_id;
    start.profile = options_.profile;
    start.limits = options_.limits;
    start.lease = kLease;
    // No token: the sandbox is this process's alone, and ends with it.
    SOMA_CO_ASSIGN(handle_, co_await runtime_->Start(std::move(start)));
    loop_.SpawnRoot(RenewLease());
    if (interrupted_by_ != 0) co_return Fail(Errc::kCancelled, "interrupted");
    co_return Status();
  }

  // Before anything runs inside, so that no connect finds nobody.
  void OpenWayOut() {
    services_.emplace(egress::Services{
        .loop = loop_, .workers = *workers_, .recorder = *tap_, .resolver = *resolver_});
    gate_ = std::make_unique<EgressGate>(*services_, options_.policy, options_.identity,
                                         handle_->TakeCaptures());
  }

  // The kernel's release, as the guest says.
  aio::Task<std::string> Greet() {
    OpenWayOut();
    SOMA_CO_ASSIGN(Fd wire, handle_->TakeWire());
    runtime::GuestLinkOptions link_options;
    random_.Fill(link_options.secret);
    link_options.next_secret = link_options.secret;
    link_options.epoch = Now();
    link_options.on_request = [this](auto channel, wire::Message request) {
      gate_->Take(std::move(channel), std::move(request));
    };
    link_ = std::make_unique<runtime::GuestLink>(loop_, std::move(wire), std::move(link_options));
    auto identity = co_await link_->Establish(kAgentPatience);
    if (!identity) {
      co_return std::unexpected(std::move(identity).error().While("connecting to the guest agent"));
    }
    wire::Init init;
    init.default_user = options_.user;
    init.hostname = options_.sandbox_id;
    init.wall_time_us = Now();
    const auto reply = co_await link_->Call(std::move(init), kInitPatience);
    if (!reply) co_return std::unexpected(reply.error());
    co_return std::move(identity->kernel_release);
  }

  std::uint64_t Now() {
    return static_cast<std::uint64_t>(clock_.Now().time_since_epoch().count());
  }

  wire::Start StartMessage() const {
    wire::Start start;
    start.profile = options_.profile == runtime::Profile::kStrict ? "strict" : "rooted";
    start.arguments = options_.command;
    for (const auto& [name, value] : options_.environment) {
      start.environment.push_back({.key = name, .value = value});
    }
    start.workdir = options_.subdirectory.empty()
                        ? options_.directory
                        : StrCat(options_.directory, "/", options_.subdirectory);
    start.user = options_.user;
    start.has_terminal = options_.terminal;
    if (options_.time_limit) {
      start.timeout_ms = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(options_.time_limit->count(), 1, UINT32_MAX));
    }
    return start;
  }

  aio::Job RenewLease() {
    for (;;) {
      co_await aio::Sleep(loop_, kRenewEvery);
      // When it fails the sandbox is gone or going, which the link says.
      (void)co_await handle_->RenewLease(kLease);
    }
  }

  aio::Job HearCaller() {
    for (;;) {
      const auto readable =
          co_await aio::WaitReadable(loop_, control_.get(), std::chrono::hours(1));
      if (readable && !*readable) continue;
      Bytes buffer(kForegroundMessageMax);
      auto packet =
          readable ? sys::ReceivePacket(control_, buffer, 1) : std::unexpected(readable.error());
      if (readable && !packet && packet.error().errno_value() == EAGAIN) continue;
      const auto message = packet ? DecodeToAttendant(ByteView(buffer).first(packet->size))
                                  : std::unexpected(packet.error());
      if (!message) {
        // It is gone, and with it whom all this is for.
        loop_.Stop();
        co_return;
      }
      if (std::holds_alternative<TerminalReady>(*message)) terminal_ready_ = true;
      if (const auto* socket = std::get_if<LauncherSocket>(&*message)) {
        launcher_answer_ = packet->descriptors.empty()
                               ? Result<Fd>(Fail(Errc::kUnavailable, socket->failure))
                               : Result<Fd>(std::move(packet->descriptors.front()));
      }
      heard_.NotifyAll();
      if (const auto* signal = std::get_if<HostSignal>(&*message)) {
        loop_.SpawnRoot(OnSignal(signal->number));
      }
    }
  }

  aio::Job OnSignal(int signal) {
    if (task_) {
      (void)co_await task_->Forward(signal);
    } else if (signal != SIGWINCH) {
      // Nothing of the command's runs yet: what was being prepared ends.
      interrupted_by_ = signal;
      if (link_) link_->Close("interrupted");
    }
  }

  const ForegroundOptions& options_;
  Fd control_;
  Fd copy_;
  Clock& clock_;
  Random& random_;
  Fd journal_directory_;
  std::unique_ptr<audit::Journal> journal_;
  std::optional<egress::FlushingRecorder> recorder_;
  std::optional<RefusalTap> tap_;
  std::optional<aio::WorkerPool> workers_;
  std::unique_ptr<egress::Resolver> resolver_;
  aio::Loop loop_;
  aio::Condition heard_{loop_};
  std::optional<Result<Fd>> launcher_answer_;
  bool terminal_ready_ = false;
  std::unique_ptr<runtime::LaunchedRuntime> runtime_;
  std::unique_ptr<runtime::SandboxHandle> handle_;
  std::optional<egress::Services> services_;
  // Before the link, which calls it.
  std::unique_ptr<EgressGate> gate_;
  std::unique_ptr<runtime::GuestLink> link_;
  std::unique_ptr<ForegroundTask> task_;
  int interrupted_by_ = 0;
  bool limit_passed_ = false;
  Result<ForegroundEnd> result_ = Fail(Errc::kCancelled, "interrupted");
};

RunOver OverOf(const Result<ForegroundEnd>& result) {
  RunOver over;
  over.ok = result.has_value();
  if (result) {
    over.end = *result;
  } else {
    over.code = result.error().code();
    over.message = result.error().message();
  }
  return over;
}

}  // namespace

void Attend(const ForegroundOptions& options, AttendantDescriptors descriptors, pid_t caller,
            Clock& clock, Random& random) {
  const Status locked = LockDown(descriptors, caller);
  const Fd control(::fcntl(descriptors.control.get(), F_DUPFD_CLOEXEC, 3));
  Result<ForegroundEnd> result = Fail(Errc::kInternal, "not run");
  if (locked) {
    // Not destroyed: the coroutines that still wait (a renewal, our input) and what they wait on
    // know each other in both directions; the end of the process frees them all.
    auto* attendant = new Attendant(options, std::move(descriptors), clock, random);
    result = attendant->Run();
  } else {
    result = std::unexpected(locked.error());
  }
  (void)sys::SendPacket(control, Encode(ToCaller(OverOf(result))));
  ::_exit(0);
}

}  // namespace soma::sandbox
