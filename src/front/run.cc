// SPDX-License-Identifier: Apache-2.0
#include "front/run.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/journal.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "front/arguments.h"
#include "front/broker.h"
#include "front/hand_over.h"
#include "front/machine_facts.h"
#include "front/named_hidden.h"
#include "front/output.h"
#include "front/policy_judge.h"
#include "front/private_place.h"
#include "front/run_record.h"
#include "front/run_report.h"
#include "front/session.h"
#include "plan/level_choice.h"
#include "plan/task_plan.h"
#include "plan/view.h"
#include "policy/decide.h"
#include "policy/handover.h"
#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "policy/path_pattern.h"
#include "sys/cpu_affinity.h"
#include "sys/soma_paths.h"
#include "walls/cgroup_sweep.h"
#include "walls/denied.h"
#include "walls/launch.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "workspace/path_probe.h"
#include "workspace/policy_files.h"

namespace soma::front {

namespace {

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> WholeEnvironment() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    out.emplace_back(*entry);
  return out;
}

// The umask can only be read by setting it; this process has one thread.
std::uint32_t ReadUmask() {
  const mode_t mask = umask(077);
  umask(mask);
  return mask;
}

std::vector<std::uint32_t> SupplementaryGroups() {
  std::vector<std::uint32_t> groups(static_cast<std::size_t>(std::max(0, getgroups(0, nullptr))));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return groups;
}

class Run {
 public:
  Run(RunOptions options, Clock& clock, Random& random)
      : options_(std::move(options)), clock_(clock), random_(random) {}

  Result<int> Execute() {
    NameRun();
    SOMA_TRY(LoadPolicy());
    Result<int> done = Decide();
    // A run that the policy refuses is a decision like every other.
    if (!done && !options_.explain && !decided_) RecordRefused(done.error());
    return done;
  }

 private:
  Result<int> Decide() {
    SOMA_ASSIGN(const plan::LevelChoice choice, ChooseLevel());
    report_.level = LevelName(choice.level);
    report_.level_reason = choice.reason;
    if (choice.level == policy::Level::kNone) {
      SOMA_TRY(PlanNothing());
    } else if (choice.level == policy::Level::kProcess) {
      SOMA_TRY(PlanWalls());
    } else {
      decided_ = true;
      return std::unexpected(HandOverRun(options_, handover_));
    }
    if (options_.explain) return Explain();
    if (options_.report) {
      SOMA_ASSIGN(ReportFile opened, ReportFile::Open(*options_.report));
      report_file_.emplace(std::move(opened));
    }
    decided_ = true;
    return Launch();
  }

  void RecordRefused(const Error& why) {
    const auto state = sys::StateDirectory();
    if (!state) return;
    const auto journal = audit::Journal::Open(
        {.directory = *state + "/journal", .run = report_.run_id, .clock = &clock_});
    if (!journal) return;  // the refusal itself is said in any case
    (void)RunRecord(**journal, report_.run_id)
        .NotStarted(Join(options_.command, " "), why.message());
    (void)(*journal)->Close();
  }

  Status LoadPolicy() {
    handover_.context.home = workspace::RealHome(Variable("HOME"));
    SOMA_ASSIGN(
        handover_.context.workspace,
        workspace::CheckWorkspace(options_.workspace.value_or("."), handover_.context.home));
    const workspace::PolicyPlaces places{.home = handover_.context.home,
                                         .config = Variable("XDG_CONFIG_HOME"),
                                         .workspace = handover_.context.workspace,
                                         .named = options_.policy_files};
    SOMA_ASSIGN(handover_.sources, workspace::ReadPolicyFiles(places));
    handover_.command_line = options_.rules;
    SOMA_ASSIGN(policy_,
                policy::Load(handover_.context, handover_.sources, handover_.command_line));
    SOMA_TRY(CheckOwnPlaces());
    SOMA_TRY(CheckWholeTree());
    report_.profile = policy_.profile;
    report_.workspace = policy_.workspace;
    report_.command = options_.command;
    report_.limits = policy_.limits;
    report_.notices = policy_.notices;
    NoticeMissingPaths();
    return {};
  }

  // The root of the view is none of the host's folders, and no rule can make it one.
  Status CheckWholeTree() const {
    for (const policy::FilesystemRules& layer : policy_.filesystem) {
      for (const policy::PathRule& rule : layer.rules) {
        if (rule.pattern != "/" || rule.verdict == policy::PathVerdict::kHide) continue;
        return Fail(Errc::kInvalidArgument,
                    StrCat(rule.origin.ToText(),
                           ": \"/\" is the whole tree, which default = \"read\" or \"hide\" under "
                           "[filesystem] decides about"));
      }
    }
    return {};
  }

  // A rule of a file may name what only some machines have; what is asked for by hand is meant.
  void NoticeMissingPaths() {
    for (const policy::FilesystemRules& layer : policy_.filesystem) {
      for (const policy::PathRule& rule : layer.rules) {
        const bool by_hand = rule.origin.where == "--read" || rule.origin.where == "--write";
        if (!by_hand || policy::HasGlob(rule.pattern)) continue;
        if (workspace::LookAt(rule.pattern).kind != policy::PathKind::kMissing) continue;
        report_.notices.push_back(StrCat(rule.origin.where, " ", EscapeForTerminal(rule.pattern),
                                         ": there is nothing of that name, so it opens nothing"));
      }
    }
  }

  // What the command could write there would decide about its next run, or about what is known of
  // this one.
  Status CheckOwnPlaces() const {
    SOMA_ASSIGN(const std::string state, sys::StateDirectory());
    SOMA_ASSIGN(const std::string runtime, sys::RuntimeDirectory());
    std::string config = Variable("XDG_CONFIG_HOME");
    if (config.empty() && !handover_.context.home.empty()) {
      config = StrCat(handover_.context.home, "/.config");
    }
    if (!config.empty()) config += "/soma";
    for (const std::string& place : {state, runtime, config}) {
      if (place.empty()) continue;
      const std::string real = workspace::RealPlace(place);
      const policy::Decision decision = policy::DecidePath(policy_, real, policy::Access::kWrite);
      if (decision.allowed) return OwnPlaceIsOpen(real, decision.origin);
      for (const policy::FilesystemRules& layer : policy_.filesystem) {
        for (const policy::PathRule& rule : layer.rules) {
          // Of a glob: what stands before its first star decides.
          const std::string fixed = rule.pattern.substr(0, rule.pattern.find('*'));
          if (rule.verdict == policy::PathVerdict::kWrite &&
              policy::IsWithin(workspace::RealPlace(fixed), real)) {
            return OwnPlaceIsOpen(real, rule.origin);
          }
        }
      }
    }
    return {};
  }

  static std::unexpected<Error> OwnPlaceIsOpen(std::string_view place,
                                               const policy::Origin& origin) {
    return Fail(Errc::kInvalidArgument,
                StrCat(EscapeForTerminal(place), " is Soma's own, and it or a part of it would be ",
                       "writable by ", origin.ToText(), ": name a narrower folder"));
  }

  Result<plan::LevelChoice> ChooseLevel() {
    const bool is_plain = !policy_.isolation.level &&
                          Satisfies(policy::Level::kProcess, policy_.isolation.minimum.value);
    // The proofs cost milliseconds; the everyday case needs none.
    return ChooseRunLevel(policy_, is_plain ? plan::MachineLevels{} : ProveLevels());
  }

  // Level `none`: the command as the caller would start it, under the same record and time limit.
  Status PlanNothing() {
    walls::WallPlan& walls = plan_.walls;
    walls.init = false;
    walls.uid = geteuid();
    walls.gid = getegid();
    walls.groups = SupplementaryGroups();
    walls.capability_bounding = ~std::uint64_t{0};
    walls.keep_capabilities = walls.uid == 0;
    walls.no_new_privs = false;
    walls.terminal = walls::TerminalKind::kKeep;
    walls.working_directory = CurrentDirectory();
    walls.arguments = options_.command;
    walls.environment = WholeEnvironment();
    walls.umask = ReadUmask();
    walls.notes.emplace_back("isolation: none, by " + report_.level_reason);
    DescribePlan();
    return {};
  }

  std::string CurrentDirectory() const {
    const std::unique_ptr<char, decltype(&free)> path(getcwd(nullptr, 0), &free);
    return path ? std::string(path.get()) : policy_.workspace;
  }

  Status PlanWalls() {
    machine_ = LookAtMachine();
    SOMA_ASSIGN(identity_, walls::ChooseIdentity(policy_.workspace));
    if (options_.explain) SOMA_TRY(LookClosely(machine_, identity_));
    return BuildPlan();
  }

  Status BuildPlan() {
    if (!machine_.namespaces) {
      SOMA_ASSIGN(identity_, walls::ChooseIdentityWithoutMaps(policy_.workspace));
    }
    SOMA_ASSIGN(const policy::PathFacts facts, workspace::GatherPathFacts(policy_));
    const plan::Caller caller{identity_, ReadUmask(), handover_.context.home};
    const plan::Command command{options_.command, WholeEnvironment(), CurrentDirectory(),
                                WantsTerminal()};
    plan::TaskPlanInputs inputs{.policy = policy_,
                                .facts = facts,
                                .caller = caller,
                                .machine = machine_,
                                .command = command,
                                .cgroup_name = walls::TaskCgroupName(getpid()),
                                .private_place = {}};
    if (!machine_.namespaces) {
      SOMA_ASSIGN(const std::string state, sys::StateDirectory());
      inputs.private_place = PrivatePlacePath(state, report_.run_id);
    }
    SOMA_ASSIGN(plan_, plan::BuildTaskPlan(inputs));
    DescribePlan();
    return {};
  }

  // After a launch that failed. True when this machine lacks what nearly every one has and the
  // policy lets the command run with less: then the plan is another one.
  Result<bool> PlanWithLess() {
    if (report_.level != LevelName(policy::Level::kProcess)) return false;
    SOMA_TRY(LookClosely(machine_, identity_));
    if (machine_.namespaces && machine_.may_notify) return false;
    SOMA_TRY(BuildPlan());
    if (!machine_.namespaces) {
      SOMA_ASSIGN(const std::string state, sys::StateDirectory());
      SOMA_ASSIGN(PrivatePlace place,
                  PrivatePlace::Create(state, report_.run_id,
                                       {.uid = plan_.walls.uid, .gid = plan_.walls.gid}));
      place_.emplace(std::move(place));
    }
    // --json says it in its one line, at the end.
    if (!options_.json) {
      for (const std::string& line : plan_.missing)
        WriteLine(STDERR_FILENO, StrCat("soma: ", line));
    }
    return true;
  }

  bool WantsTerminal() const {
    return options_.terminal || (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1);
  }

  Result<int> Explain() {
    std::string text = StrCat("level: ", report_.level, " (", report_.level_reason, ")\n",
                              "profile: ", report_.profile,
                              "\nworkspace: ", EscapeForTerminal(report_.workspace), "\n");
    for (const std::string& line : walls::Describe(plan_.walls)) text += line + "\n";
    for (const plan::HiddenPath& path : plan_.view.hidden) {
      text += StrCat("hidden ", EscapeForTerminal(path.path), " (", path.origin.ToText(), ")\n");
    }
    SOMA_TRY(WriteOut(text));
    return 0;
  }

  Result<int> Launch() {
    SOMA_ASSIGN(const std::string state, sys::StateDirectory());
    SOMA_ASSIGN(const std::unique_ptr<audit::Journal> journal,
                audit::Journal::Open(
                    {.directory = state + "/journal", .run = report_.run_id, .clock = &clock_}));
    RunRecord record(*journal, report_.run_id);
    std::optional<Broker> broker;
    if (plan_.walls.network == walls::NetworkKind::kCapture) {
      // It loads while the walls are built.
      SOMA_ASSIGN(Broker started, Broker::Start(handover_, report_.run_id));
      broker.emplace(std::move(started));
    }
    PolicyJudge judge(policy_, plan_.view, broker.has_value());
    std::optional<Error> record_failure;
    // From here on one process at a time has work. Not earlier: a broker, and whoever runs the
    // levels above, live on and must have every CPU.
    sys::StayOnThisCpu stay;
    const walls::LaunchOptions launch{.stay = &stay};
    const SessionInputs session{.plan = plan_.walls,
                                .options = launch,
                                .judge = judge,
                                .clock = clock_,
                                .time_limit = policy_.limits.time
                                                  ? std::optional(policy_.limits.time->value)
                                                  : std::nullopt,
                                .on_refusal =
                                    [&](const walls::Denied& denied) {
                                      report_.AddRefusal(denied);
                                      if (const Status status = record.Refusal(denied); !status)
                                        record_failure = status.error();
                                    },
                                .before_start = [&](walls::CaptureSockets sockets) -> Status {
                                  begun_ = true;
                                  stay.Release();
                                  if (broker) SOMA_TRY(broker->Serve(std::move(sockets)));
                                  return record.Start(report_, policy_);
                                }};
    auto end = RunSession(session);
    if (!end && !begun_) {
      SOMA_ASSIGN(const bool with_less, PlanWithLess());
      if (with_less) end = RunSession(session);
    }
    if (!end) return std::unexpected(std::move(end).error());
    report_.end = end->end;
    report_.how = end->end.Describe();
    report_.hits = end->hits;
    report_.refusals_beyond += end->refusals_dropped;
    report_.exit_code = end->end.ExitCode();
    if (report_.exit_code != 0 && report_.level == LevelName(policy::Level::kProcess)) {
      report_.named_hidden = NamedHidden({.policy = plan_.view.effective,
                                          .words = options_.command,
                                          .directory = plan_.walls.working_directory,
                                          .home = handover_.context.home});
    }
    if (const Status status = record.End(report_); !status) record_failure = status.error();
    if (const Status status = journal->Close(); !status) record_failure = status.error();
    if (plan_.limits_by_cgroup) walls::SweepTaskCgroups();
    if (record_failure)
      return std::unexpected(std::move(*record_failure).While("recording the run"));
    return Finish();
  }

  void NameRun() {
    std::array<std::uint8_t, 8> id{};
    random_.Fill(id);
    report_.run_id = Hex(id);
  }

  void DescribePlan() {
    report_.notes = plan_.walls.notes;
    report_.missing = plan_.missing;
    report_.hidden = plan_.view.hidden;
    report_.limits_by_cgroup = plan_.limits_by_cgroup;
  }

  Result<int> Finish() {
    if (report_.end.kind == walls::TaskEndKind::kNotStarted) {
      WriteLine(STDERR_FILENO, StrCat("soma: ", EscapeForTerminal(options_.command.front()), ": ",
                                      report_.end.Describe()));
    }
    if (options_.json) {
      WriteText(STDERR_FILENO, ReportJson(report_));
    } else if (!options_.quiet) {
      for (const std::string& notice : report_.notices)
        WriteLine(STDERR_FILENO, StrCat("soma: ", notice));
      WriteText(STDERR_FILENO, SummaryText(report_));
    }
    if (report_file_) SOMA_TRY(report_file_->Write(ReportJson(report_)));
    return report_.exit_code;
  }

  RunOptions options_;
  Clock& clock_;
  Random& random_;
  policy::Handover handover_;
  policy::Policy policy_;
  plan::Machine machine_;
  walls::RunIdentity identity_;
  plan::TaskPlan plan_;
  std::optional<PrivatePlace> place_;
  std::optional<ReportFile> report_file_;
  bool decided_ = false;
  bool begun_ = false;
  RunReport report_;
};

}  // namespace

int RunMain(std::span<const std::string_view> arguments, Clock& clock, Random& random) {
  auto options = ParseRunArguments(arguments);
  Result<int> code = kExitOwnFailure;
  if (!options) {
    code = std::unexpected(std::move(options).error());
  } else if (options->help) {
    const Status written = WriteOut(RunHelp());
    if (written) return 0;
    code = std::unexpected(written.error());
  } else {
    code = Run(*std::move(options), clock, random).Execute();
  }
  if (code) return *code;
  WriteLine(STDERR_FILENO, StrCat("soma: ", code.error().message()));
  return kExitOwnFailure;
}

}  // namespace soma::front
