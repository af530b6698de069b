// SPDX-License-Identifier: Apache-2.0
// Isolation levels and task profiles: their names, and which level satisfies which minimum.
//
// Pure values. The table behind the ranks is docs/policy.md, "Levels".
#ifndef SOMA_POLICY_LEVEL_H_
#define SOMA_POLICY_LEVEL_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace soma::policy {

enum class Level : std::uint8_t {
  kNone,
  kProcess,
  kContainer,
  kEmulated,  // a microVM on a software CPU: not a hardware boundary, ranks with `container`
  kGvisor,
  kMicrovm,
  kConfidential,
};

enum class TaskProfile : std::uint8_t { kStrict, kRooted };

std::string_view LevelName(Level level);
std::optional<Level> ParseLevel(std::string_view text);
std::string_view TaskProfileName(TaskProfile profile);
std::optional<TaskProfile> ParseTaskProfile(std::string_view text);

// 0 none, 1 process, 2 container and emulated, 3 gvisor, 4 microvm, 5 confidential.
int LevelRank(Level level);

// Whether running at `level` keeps the promise of `minimum`. `emulated` never satisfies `gvisor` or
// above, because emulation is no hardware boundary.
inline bool Satisfies(Level level, Level minimum) { return LevelRank(level) >= LevelRank(minimum); }

}  // namespace soma::policy

#endif  // SOMA_POLICY_LEVEL_H_
