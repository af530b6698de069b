// SPDX-License-Identifier: Apache-2.0
#include "policy/level.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace soma::policy {

namespace {

struct LevelRow {
  Level level;
  std::string_view name;
  int rank;
};

constexpr std::array<LevelRow, 7> kLevels = {{
    {Level::kNone, "none", 0},
    {Level::kProcess, "process", 1},
    {Level::kContainer, "container", 2},
    {Level::kEmulated, "emulated", 2},
    {Level::kGvisor, "gvisor", 3},
    {Level::kMicrovm, "microvm", 4},
    {Level::kConfidential, "confidential", 5},
}};

const LevelRow& RowOf(Level level) { return kLevels[static_cast<std::size_t>(level)]; }

}  // namespace

std::string_view LevelName(Level level) { return RowOf(level).name; }

std::optional<Level> ParseLevel(std::string_view text) {
  for (const LevelRow& row : kLevels) {
    if (row.name == text) return row.level;
  }
  return std::nullopt;
}

int LevelRank(Level level) { return RowOf(level).rank; }

std::string_view TaskProfileName(TaskProfile profile) {
  return profile == TaskProfile::kRooted ? "rooted" : "strict";
}

std::optional<TaskProfile> ParseTaskProfile(std::string_view text) {
  if (text == "strict") return TaskProfile::kStrict;
  if (text == "rooted") return TaskProfile::kRooted;
  return std::nullopt;
}

}  // namespace soma::policy
