// SPDX-License-Identifier: Apache-2.0
// soma run, at the levels above `process`: `soma` has read the policy and hands it over
// (policy/handover.h); the command runs in a sandbox of its own.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "audit/event.h"
#include "audit/journal.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/launcher_use.h"
#include "cli/run_setting.h"
#include "parse/json.h"
#include "plan/level_choice.h"
#include "policy/handover.h"
#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"
#include "probe/report.h"
#include "sandbox/foreground_run.h"
#include "sandbox/host_signals.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "sys/soma_paths.h"

namespace soma::cli {
namespace {

using audit::Durability;
using audit::Event;
using audit::EventKind;
using parse::Json;

struct RunOptions {
  int handover = -1;
  bool terminal = false;
  bool interactive = false;  // stdin is always passed
  bool quiet = false;
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
    SOMA_TRY(CheckMachine());
    SOMA_ASSIGN(auto opened,
                audit::Journal::Open(
                    {.directory = state_ + "/journal", .run = run_id_, .clock = &context_.clock}));
    const std::shared_ptr<audit::Journal> journal = std::move(opened);
    SOMA_TRY(PrepareEgress(journal));
    Tell(RunNotes(setting_));
    SOMA_ASSIGN(LauncherUse launcher, LauncherUse::Begin());
    setting_.launcher_socket = launcher.socket();
    Status recorded = RecordStart(*journal);
    Result<sandbox::ForegroundEnd> end = Fail(Errc::kInternal, "not run");
    if (recorded) {
      end = RunInForeground(setting_, signals, context_.clock, context_.random);
      recorded = RecordEnd(*journal, end);
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

  // What would otherwise fail late and in the launcher's words.
  Status CheckMachine() {
    SOMA_ASSIGN(state_, sys::StateDirectory());
    const bool is_root = ::geteuid() == 0;
    const bool needs_kernel = choice_.level == policy::Level::kEmulated;
    if (!is_root && needs_kernel) {
      return Fail(Errc::kPermissionDenied,
                  StrCat("level ", setting_.level, " needs root; container and process do not"));
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
  Status PrepareEgress(const std::shared_ptr<audit::Journal>& journal) {
    // A resolver's search domains would turn an allowed name into another one.
    (void)::setenv("LOCALDOMAIN", "", 1);
    SOMA_ASSIGN(
        setting_.egress,
        sandbox::ForegroundEgress::Create(
            journal, policy_, {.run = run_id_, .sandbox = setting_.sandbox_id, .tenant = {}}));
    return {};
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

  Status RecordStart(audit::Recorder& recorder) const {
    Event decided{.kind = EventKind::kPolicyDecision, .verdict = audit::Verdict::kAllow};
    decided.run = run_id_;
    decided.subject = StrCat("profile ", policy_.profile);
    decided.object = policy_.workspace;
    decided.rule = choice_.reason;
    decided.fields = {{"level", setting_.level},
                      {"minimum", std::string(LevelName(policy_.isolation.minimum.value))}};
    if (policy_.locked) decided.fields.emplace_back("locked", policy_.locked->ToText());
    SOMA_TRY(recorder.Record(decided, Durability::kSoon));
    Event start{.kind = EventKind::kStart, .verdict = audit::Verdict::kAllow};
    start.run = run_id_;
    start.sandbox = setting_.sandbox_id;
    start.subject = Join(options_.command, " ");
    start.object = policy_.workspace;
    start.fields = {{"level", setting_.level},
                    {"level_reason", choice_.reason},
                    {"profile", policy_.profile},
                    {"template", setting_.template_id}};
    return recorder.Record(start, Durability::kSoon);
  }

  Status RecordEnd(audit::Recorder& recorder, const Result<sandbox::ForegroundEnd>& end) const {
    Event event{.kind = EventKind::kEnd};
    event.run = run_id_;
    event.sandbox = setting_.sandbox_id;
    event.subject = Join(options_.command, " ");
    event.fields = {{"exit", StrCat(end ? end->task.exit_code : kExitFailure)},
                    {"how", end ? end->task.how : end.error().message()}};
    if (end && end->task.timed_out) event.fields.emplace_back("limits", "time");
    return recorder.Record(event, Durability::kSoon);
  }

  Result<int> Finish(const sandbox::ForegroundEnd& end) {
    std::vector<std::string> lines = policy_.notices;
    if (end.hidden > 0) lines.push_back(StrCat(end.hidden, " hidden paths were not copied"));
    if (end.other > 0) {
      lines.push_back(StrCat(end.other, " sockets, devices or unreadable files were not copied"));
    }
    if (end.task.timed_out)
      lines.emplace_back("the time limit was reached: the command was killed");
    Tell(lines);
    // Said even with -q: otherwise nothing tells 127 of ours from 127 of the command.
    if (!end.task.started) Complain(end.task.how);
    const std::string report = ReportJson(end, lines);
    if (context_.json) (void)std::fputs(report.c_str(), stderr);
    if (!options_.report.empty()) {
      SOMA_TRY(sys::WriteFileAtomically(options_.report, AsBytes(report), 0644));
    }
    return end.task.exit_code;
  }

  std::string ReportJson(const sandbox::ForegroundEnd& end,
                         const std::vector<std::string>& notices) const {
    Json command = Json::MakeArray();
    for (const std::string& word : options_.command) command.Append(Json(word));
    Json notes = Json::MakeArray();
    for (const std::string& note : RunNotes(setting_)) notes.Append(Json(note));
    Json said = Json::MakeArray();
    for (const std::string& notice : notices) said.Append(Json(notice));
    Json out = Json::MakeObject();
    out.Set("run", Json(run_id_));
    out.Set("sandbox", Json(setting_.sandbox_id));
    out.Set("level", Json(setting_.level));
    out.Set("level_reason", Json(choice_.reason));
    out.Set("profile", Json(policy_.profile));
    out.Set("workspace", Json(policy_.workspace));
    out.Set("directory", Json(setting_.directory));
    out.Set("command", std::move(command));
    out.Set("exit_code", Json(std::int64_t{end.task.exit_code}));
    out.Set("end", Json(end.task.how));
    out.Set("timed_out", Json(end.task.timed_out));
    out.Set("kernel", Json(end.kernel));
    out.Set("notes", std::move(notes));
    out.Set("notices", std::move(said));
    return out.Write() + "\n";
  }

  const Context& context_;
  const RunOptions& options_;
  std::string state_;
  std::string run_id_;
  policy::Policy policy_;
  plan::LevelChoice choice_;
  sandbox::ForegroundOptions setting_;
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
