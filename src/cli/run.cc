// SPDX-License-Identifier: Apache-2.0
// soma run, at the levels above `process`: `soma` has read the policy and hands it over
// (policy/handover.h); the command runs in a sandbox of its own.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "audit/journal.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/launcher_use.h"
#include "cli/run_setting.h"
#include "front/run_record.h"
#include "front/run_report.h"
#include "plan/level_choice.h"
#include "policy/explain.h"
#include "policy/handover.h"
#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"
#include "probe/report.h"
#include "sandbox/foreground_end.h"
#include "sandbox/foreground_run.h"
#include "sandbox/host_signals.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/service_user.h"
#include "sys/soma_paths.h"

namespace soma::cli {
namespace {

struct RunOptions {
  int handover = -1;
  bool terminal = false;
  bool interactive = false;  // stdin is always passed
  bool quiet = false;
  bool explain = false;  // print what would stand around the command, run nothing
  std::string report;
  std::vector<std::string> command;
};

class LevelRun {
 public:
  LevelRun(const Context& context, const RunOptions& options)
      : context_(context), options_(options) {}

  Result<int> Execute() {
    SOMA_ASSIGN(sandbox::HostSignals signals, sandbox::HostSignals::Catch());
    SOMA_TRY(LoadPolicy());
    if (options_.explain) return Explain();
    SOMA_ASSIGN(state_, sys::StateDirectory());
    setting_.journal_directory = state_ + "/journal";
    SOMA_TRY(sys::MakeServiceDirectory(setting_.journal_directory));
    SOMA_ASSIGN(const auto journal, audit::Journal::Open({.directory = setting_.journal_directory,
                                                          .run = run_id_,
                                                          .clock = &context_.clock}));
    front::RunRecord record(*journal, run_id_);
    if (Status fine = CheckMachine(); !fine) {
      (void)record.NotStarted(Join(options_.command, " "), fine.error().message());
      (void)journal->Close();
      return std::unexpected(std::move(fine).error());
    }
    PrepareEgress();
    Describe();
    Tell(report_.notes);
    SOMA_ASSIGN(LauncherUse launcher, LauncherUse::Begin());
    setting_.launcher_socket = launcher.socket();
    Status recorded = record.Start(report_, policy_);
    Result<sandbox::ForegroundEnd> end = Fail(Errc::kInternal, "not run");
    if (recorded) {
      end = RunInForeground(setting_, signals, context_.clock, context_.random);
      NoteEnd(end);
      recorded = record.End(report_);
    }
    const Status stopped = launcher.End();
    if (const Status closed = journal->Close(); recorded && !closed) recorded = closed;
    SOMA_TRY_WHILE(recorded, "recording the run");
    if (!end) return std::unexpected(std::move(end).error());
    SOMA_TRY_WHILE(stopped, "stopping the launcher");
    return Finish(*end);
  }

 private:
  Status LoadPolicy() {
    const Fd fd(options_.handover);
    SOMA_ASSIGN(const std::string text, sys::ReadAt(fd, 0, policy::kHandoverBytesMax + 1));
    SOMA_ASSIGN(const policy::Handover handover, policy::DecodeHandover(text));
    SOMA_ASSIGN(policy_, policy::Load(handover.context, handover.sources, handover.command_line));
    SOMA_ASSIGN(choice_, plan::ChooseRunLevel(policy_, plan::MachineLevels{}));
    RunCaller caller;
    caller.is_root = ::geteuid() == 0;
    std::error_code ignored;
    caller.current_directory = std::filesystem::current_path(ignored).string();
    for (char** entry = environ; *entry != nullptr; ++entry)
      caller.environment.emplace_back(*entry);
    SOMA_ASSIGN(setting_, RunSetting(policy_, choice_, caller));
    std::array<std::uint8_t, 8> id{};
    context_.random.Fill(id);
    run_id_ = Hex(id);
    setting_.sandbox_id = StrCat("run", run_id_);
    setting_.command = options_.command;
    setting_.terminal =
        options_.terminal || (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1);
    return {};
  }

  int Explain() const {
    PrintLine(StrCat("level: ", setting_.level, " (", choice_.reason, ")"));
    PrintLine(StrCat("profile: ", policy_.profile));
    PrintLine(StrCat("workspace: ", EscapeForTerminal(policy_.workspace)));
    for (const std::string& line : ExplainSetting(setting_)) PrintLine(line);
    for (const std::string& line : policy::ExplainPolicy(policy_)) PrintLine(line);
    return kExitFine;
  }

  // What would otherwise fail late and in the launcher's words.
  Status CheckMachine() {
    const bool is_root = ::geteuid() == 0;
    const bool needs_kernel = choice_.level == policy::Level::kEmulated;
    if (!is_root && needs_kernel) {
      return Fail(Errc::kPermissionDenied,
                  StrCat("level ", setting_.level, " (", choice_.reason,
                         ") needs root; --isolation container and process do not"));
    }
    if (!is_root) SOMA_TRY(CheckUserNamespaces());
    const std::string launcher = state_ + "/launcher";
    const std::string image =
        StrCat(launcher, "/templates/", kRunTemplate, is_root ? "/root.erofs" : "/tree");
    const std::string kernel = launcher + "/kernel/vmlinux";
    if (!is_root && ::access(image.c_str(), F_OK) != 0) {
      return Fail(Errc::kFailedPrecondition,
                  StrCat("level ", setting_.level, " starts from the template '", kRunTemplate,
                         "', which you don't have: soma template import DIRECTORY (one that root"
                         " has built and published)"));
    }
    if (::access(image.c_str(), F_OK) != 0 ||
        (needs_kernel && ::access(kernel.c_str(), F_OK) != 0)) {
      return Fail(Errc::kFailedPrecondition,
                  StrCat("level ", setting_.level, " starts from the template '", kRunTemplate,
                         "', which is not built yet: soma template build ", kRunTemplate));
    }
    return {};
  }

  // Also where the policy allows nothing: then every attempt is refused at once, with its reason.
  void PrepareEgress() {
    setting_.policy = policy_;
    setting_.identity = {.run = run_id_, .sandbox = setting_.sandbox_id, .tenant = {}};
    setting_.on_refused = [this](const sandbox::RefusedConnect& refused) {
      report_.AddRefusal({.command = {},
                          .tried = refused.what,
                          .asked = EscapeForTerminal(refused.object),
                          .object = EscapeForTerminal(refused.object),
                          .rule = EscapeForTerminal(refused.rule),
                          .remedy = EscapeForTerminal(refused.remedy),
                          .errno_value = ECONNREFUSED,
                          .times = refused.times});
    };
  }

  // All that an ordinary user's container stands on.
  Status CheckUserNamespaces() const {
    SOMA_TRY(sys::MakeDirectories(state_, 0700));
    const probe::Row row = probe::ProbeUserNamespace(state_);
    if (row.finding == probe::Finding::kProven) return {};
    return Fail(Errc::kFailedPrecondition,
                StrCat("level ", setting_.level,
                       " needs user namespaces, and this machine gives an ordinary user none (",
                       row.evidence, "); ", row.remedy));
  }

  void Tell(const std::vector<std::string>& lines) const {
    if (options_.quiet || context_.json) return;
    for (const std::string& line : lines) Complain(line);
  }

  void Describe() {
    report_.run_id = run_id_;
    report_.level = setting_.level;
    report_.level_reason = choice_.reason;
    report_.profile = policy_.profile;
    report_.workspace = policy_.workspace;
    report_.command = options_.command;
    report_.limits = policy_.limits;
    report_.limits_by_cgroup = ::geteuid() == 0;
    report_.notes = RunNotes(setting_);
    report_.notices = policy_.notices;
    report_.sandbox = {.id = setting_.sandbox_id,
                       .template_id = setting_.template_id,
                       .directory = setting_.directory,
                       .kernel = {}};
  }

  void NoteEnd(const Result<sandbox::ForegroundEnd>& end) {
    report_.exit_code = end ? end->task.exit_code : kExitFailure;
    report_.how = end ? end->task.how : end.error().message();
    if (!end) return;
    report_.sandbox->kernel = end->kernel;
    report_.hits = {.out_of_memory_kills = end->hits.memory_kills,
                    .refused_forks = end->hits.refused_forks,
                    .timed_out = end->task.timed_out};
    // Over at the very moment of its limit: the limit is what is told, so it is what counts.
    if (end->task.timed_out && report_.exit_code == 0) report_.exit_code = 128 + SIGKILL;
    if (end->hidden > 0) {
      report_.notices.push_back(StrCat(end->hidden, " hidden paths were not copied"));
    }
    if (end->other > 0) {
      report_.notices.push_back(
          StrCat(end->other, " sockets, devices or unreadable files were not copied"));
    }
  }

  Result<int> Finish(const sandbox::ForegroundEnd& end) {
    Tell(report_.notices);
    // Said even with -q: otherwise nothing tells 127 of ours from 127 of the command.
    if (!end.task.started) Complain(end.task.how);
    const std::string report = front::ReportJson(report_);
    if (context_.json) {
      (void)std::fputs(report.c_str(), stderr);
    } else if (!options_.quiet) {
      (void)std::fputs(front::SummaryText(report_).c_str(), stderr);
    }
    if (!options_.report.empty()) {
      SOMA_TRY(sys::WriteFileAtomically(options_.report, AsBytes(report), 0644));
    }
    return report_.exit_code;
  }

  const Context& context_;
  const RunOptions& options_;
  std::string state_;
  std::string run_id_;
  policy::Policy policy_;
  plan::LevelChoice choice_;
  sandbox::ForegroundOptions setting_;
  front::RunReport report_;
};

}  // namespace

void AddRun(CLI::App& tools, Context& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = AddCommand(tools, "run", "Run a command in a sandbox (see soma run --help)",
                                 "  soma run --isolation container -- make test");
  command->add_option("--handover-fd", options->handover, "descriptor with the policy, from soma")
      ->required();
  command->add_flag("-t,--terminal", options->terminal, "give the command a terminal");
  command->add_flag("-i,--interactive", options->interactive, "accepted; stdin is always passed");
  command->add_flag("-q,--quiet", options->quiet, "say nothing that is not an error");
  command->add_flag("--explain", options->explain, "print what would stand around it, run nothing");
  command->add_option("--report", options->report, "write what happened to FILE, as JSON");
  command->add_option("command", options->command, "command and arguments, after --")->required();
  command->callback([options, &context] {
    const auto code = LevelRun(context, *options).Execute();
    if (code) {
      context.exit_code = *code;
    } else {
      FailWith(context, code.error());
    }
  });
}

}  // namespace soma::cli
