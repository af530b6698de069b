// SPDX-License-Identifier: Apache-2.0
// soma audit tail | verify
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/tail.h"
#include "audit/time_text.h"
#include "audit/verify.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "sys/soma_paths.h"

namespace soma::cli {

namespace {

struct AuditOptions {
  std::string directory;
  std::optional<std::string> head;
  std::string kind;
  std::string run;
  std::size_t count = 20;
  bool follow = false;
};

Result<std::string> JournalDirectory(const AuditOptions& options) {
  if (!options.directory.empty()) return options.directory;
  SOMA_ASSIGN(const std::string state, sys::StateDirectory());
  return state + "/journal";
}

// One record as a line that a person reads: time, kind, verdict, who, what, why.
std::string Describe(const audit::Event& event) {
  std::string out = StrCat(audit::FormatTime(event.time), " ", audit::KindName(event.kind));
  const auto add = [&](std::string_view label, std::string_view value) {
    if (!value.empty()) out += StrCat(" ", label, EscapeForTerminal(value));
  };
  add("", audit::VerdictName(event.verdict));
  if (event.source == audit::Source::kGuest) out += " (said by the guest)";
  add("", event.subject);
  add("-> ", event.object);
  for (const auto& [key, value] : event.fields) add(StrCat(key, "="), value);
  add("run=", event.run);
  add("sandbox=", event.sandbox);
  add("tenant=", event.tenant);
  add("rule: ", event.rule);
  add("to allow it: ", event.remedy);
  if (event.cut) out += " (cut)";
  return out;
}

bool Wanted(const AuditOptions& options, const audit::Event& event) {
  return (options.kind.empty() || options.kind == audit::KindName(event.kind)) &&
         (options.run.empty() || options.run == event.run);
}

void PrintRecords(const Context& context, const AuditOptions& options,
                  const std::vector<audit::TailRecord>& records) {
  for (const audit::TailRecord& record : records) {
    if (!Wanted(options, record.event)) continue;
    PrintLine(context.json ? record.line : Describe(record.event));
  }
  (void)std::fflush(stdout);
}

Status CheckKind(std::string_view wanted) {
  if (wanted.empty()) return {};
  std::string kinds;
  for (int i = 0; i <= static_cast<int>(audit::EventKind::kJournal); ++i) {
    const std::string_view kind = audit::KindName(static_cast<audit::EventKind>(i));
    if (kind == wanted) return {};
    kinds += StrCat(kinds.empty() ? "" : ", ", kind);
  }
  return Fail(Errc::kInvalidArgument,
              StrCat("--kind ", EscapeForTerminal(wanted), ": there are ", kinds));
}

Status RunTail(const Context& context, const AuditOptions& options) {
  SOMA_TRY(CheckKind(options.kind));
  SOMA_ASSIGN(const std::string directory, JournalDirectory(options));
  audit::Tail tail(directory);
  const bool filtered = !options.kind.empty() || !options.run.empty();
  // With a filter the last `count` that match may lie far back: look at all that is at hand.
  SOMA_ASSIGN(auto records, tail.Last(filtered ? SIZE_MAX : options.count));
  if (filtered) {
    std::erase_if(records, [&](const auto& record) { return !Wanted(options, record.event); });
    const std::size_t extra = records.size() - std::min(records.size(), options.count);
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(extra));
  }
  PrintRecords(context, options, records);
  while (options.follow && std::ferror(stdout) == 0) {
    const timespec pause{0, 200'000'000};
    (void)::nanosleep(&pause, nullptr);
    SOMA_ASSIGN(const auto more, tail.Next());
    PrintRecords(context, options, more);
  }
  return {};
}

std::string FindingText(const audit::Finding& finding) {
  std::string out = finding.file;
  if (finding.segment) out += StrCat(", segment ", *finding.segment);
  if (finding.record) out += StrCat(", record ", *finding.record);
  if (finding.byte_offset) out += StrCat(", byte ", *finding.byte_offset);
  return StrCat(out, ": ", finding.what);
}

std::string FindingJson(const audit::Finding& finding) {
  std::string out = StrCat("{\"file\":", JsonText(finding.file));
  if (finding.segment) out += StrCat(",\"segment\":", *finding.segment);
  if (finding.record) out += StrCat(",\"record\":", *finding.record);
  if (finding.byte_offset) out += StrCat(",\"byte_offset\":", *finding.byte_offset);
  return StrCat(out, ",\"what\":", JsonText(finding.what), "}");
}

std::string FindingsJson(const std::vector<audit::Finding>& findings) {
  std::vector<std::string> parts;
  parts.reserve(findings.size());
  for (const audit::Finding& finding : findings) parts.push_back(FindingJson(finding));
  return StrCat("[", Join(parts, ","), "]");
}

void PrintReport(const Context& context, const audit::VerifyReport& report) {
  if (context.json) {
    PrintLine(StrCat("{\"ok\":", report.ok() ? "true" : "false", ",\"records\":", report.records,
                     ",\"segments\":", report.segments, ",\"head_lines\":", report.head_lines,
                     ",\"head\":\"", Hex(report.head), "\",\"faults\":",
                     FindingsJson(report.faults), ",\"notes\":", FindingsJson(report.notes), "}"));
    return;
  }
  for (const audit::Finding& note : report.notes) {
    PrintLine(StrCat("note: ", EscapeForTerminal(FindingText(note))));
  }
  for (const audit::Finding& fault : report.faults) {
    PrintLine(StrCat("DAMAGED: ", EscapeForTerminal(FindingText(fault))));
  }
  PrintLine(StrCat(report.ok() ? "The chain holds: " : "The chain does not hold: ", report.records,
                   " records in ", report.segments, " segments, head ", Hex(report.head)));
}

Status RunVerify(Context& context, const AuditOptions& options) {
  std::optional<audit::Digest> head;
  // Also where it is empty: a file that was to hold it and is missing must not look like a check.
  if (options.head) {
    head = audit::ParseDigest(*options.head);
    if (!head) return Fail(Errc::kInvalidArgument, "--head wants 64 hexadecimal digits");
  }
  SOMA_ASSIGN(const std::string directory, JournalDirectory(options));
  SOMA_ASSIGN(const audit::VerifyReport report, audit::VerifyJournal(directory, head));
  PrintReport(context, report);
  context.exit_code = report.ok() ? kExitFine : kExitNo;
  return {};
}

void AddTail(CLI::App& audit, Context& context, const std::shared_ptr<AuditOptions>& options) {
  CLI::App* tail = AddCommand(audit, "tail", "Show the newest records, and follow with -f",
                              "soma audit tail -f --kind refusal");
  tail->add_option("-n,--count", options->count, "How many records")->capture_default_str();
  tail->add_flag("-f,--follow", options->follow, "Go on with new records as they come");
  tail->add_option("--kind", options->kind, "Only records of this kind");
  tail->add_option("--run", options->run, "Only records of this run");
  tail->callback([&context, options] {
    if (const Status status = RunTail(context, *options); !status) {
      FailWith(context, status.error());
    }
  });
}

void AddVerify(CLI::App& audit, Context& context, const std::shared_ptr<AuditOptions>& options) {
  CLI::App* verify =
      AddCommand(audit, "verify", "Check every record's place in the chain; 1 when it is damaged",
                 "soma audit verify --head \"$(cat /elsewhere/head)\"");
  verify->add_option("--head", options->head,
                     "A head that was kept elsewhere and must be part of the journal");
  verify->callback([&context, options] {
    if (const Status status = RunVerify(context, *options); !status) {
      FailWith(context, status.error());
    }
  });
}

}  // namespace

void AddAudit(CLI::App& tools, Context& context) {
  const auto options = std::make_shared<AuditOptions>();
  CLI::App* audit = AddCommand(tools, "audit", "Read and check the journal", "soma audit verify");
  audit->add_option("--journal", options->directory, "The journal's directory");
  audit->require_subcommand(1);
  AddTail(*audit, context, options);
  AddVerify(*audit, context, options);
}

}  // namespace soma::cli
