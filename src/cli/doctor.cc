// SPDX-License-Identifier: Apache-2.0
// soma doctor
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "probe/levels.h"
#include "probe/report.h"
#include "walls/cgroup_sweep.h"

namespace soma::cli {

namespace {

std::string Padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.resize(std::max(width, out.size()), ' ');
  return out;
}

// One decimal; the formatter of `base` has no floating point.
std::string Tenths(double value) {
  const auto tenths = static_cast<std::int64_t>(value * 10);
  return StrCat(tenths / 10, ".", tenths % 10);
}

void PrintTable(const probe::Report& report, const std::vector<probe::LevelFinding>& levels) {
  constexpr std::size_t kNameWidth = 19;
  constexpr std::size_t kFindingWidth = 9;
  PrintLine(StrCat("What this machine enforces for uid ", ::geteuid(), ", each tried just now:\n"));
  for (const probe::Row& row : report.rows) {
    PrintLine(StrCat(Padded(probe::FeatureName(row.feature), kNameWidth),
                     Padded(probe::FindingName(row.finding), kFindingWidth),
                     EscapeForTerminal(row.evidence)));
  }
  PrintLine("\nSo these levels can be had:\n");
  for (const probe::LevelFinding& level : levels) {
    PrintLine(StrCat(Padded(level.name, kNameWidth),
                     Padded(level.possible ? "yes" : "no", kFindingWidth),
                     EscapeForTerminal(level.reason)));
  }
  bool headed = false;
  for (const probe::Row& row : report.rows) {
    if (row.remedy.empty()) continue;
    if (!headed) PrintLine("\nWhat would help:\n");
    headed = true;
    PrintLine(StrCat(Padded(probe::FeatureName(row.feature), kNameWidth), "for ",
                     probe::FeaturePurpose(row.feature), ": ", row.remedy));
  }
}

void PrintJson(const probe::Report& report, const std::vector<probe::LevelFinding>& levels) {
  std::string out = StrCat("{\"uid\":", ::geteuid(), ",\"features\":[");
  std::string_view comma;
  for (const probe::Row& row : report.rows) {
    out += StrCat(comma, "{\"name\":", JsonText(probe::FeatureName(row.feature)),
                  ",\"purpose\":", JsonText(probe::FeaturePurpose(row.feature)),
                  ",\"finding\":", JsonText(probe::FindingName(row.finding)),
                  ",\"evidence\":", JsonText(row.evidence), ",\"remedy\":", JsonText(row.remedy));
    if (row.figure != 0) out += StrCat(",\"figure\":", Tenths(row.figure));
    out += "}";
    comma = ",";
  }
  out += "],\"levels\":[";
  comma = "";
  for (const probe::LevelFinding& level : levels) {
    out += StrCat(comma, "{\"name\":", JsonText(level.name),
                  ",\"possible\":", level.possible ? "true" : "false",
                  ",\"reason\":", JsonText(level.reason), "}");
    comma = ",";
  }
  PrintLine(out + "]}");
}

void RunDoctor(Context& context, const std::string& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    Complain(StrCat("can't write in ", directory, "; name another place with --directory"));
    context.exit_code = kExitFailure;
    return;
  }
  walls::SweepTaskCgroups();
  const probe::Report report = probe::RunAll(directory);
  const std::vector<probe::LevelFinding> levels = probe::FindLevels(report);
  if (context.json) {
    PrintJson(report, levels);
  } else {
    PrintTable(report, levels);
  }
  // Without the first level soma can't do anything at all here.
  if (!levels.front().possible) context.exit_code = kExitNo;
}

}  // namespace

void AddDoctor(CLI::App& tools, Context& context) {
  CLI::App* command =
      AddCommand(tools, "doctor", "Try what this machine can enforce, and say what is missing",
                 "soma doctor --json");
  const auto directory = std::make_shared<std::string>();
  command->add_option(
      "--directory", *directory,
      "An existing directory on the file system that sandboxes will use (default: TMPDIR or /tmp)");
  command->callback([&context, directory] {
    if (directory->empty()) {
      const char* temporary = std::getenv("TMPDIR");
      *directory = temporary != nullptr ? temporary : "/tmp";
    }
    RunDoctor(context, *directory);
  });
}

}  // namespace soma::cli
