// SPDX-License-Identifier: Apache-2.0
#include "plan/level_choice.h"

#include <array>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/level.h"
#include "policy/model.h"

namespace soma::plan {

namespace {

using policy::Level;
using policy::LevelName;

// Null for the levels that need no proof.
const LevelProof* ProofOf(const MachineLevels& machine, Level level) {
  switch (level) {
    case Level::kContainer:
      return &machine.container;
    case Level::kGvisor:
      return &machine.gvisor;
    case Level::kMicrovm:
      return &machine.microvm;
    case Level::kConfidential:
      return &machine.confidential;
    case Level::kNone:
    case Level::kProcess:
    case Level::kEmulated:
      return nullptr;
  }
  return nullptr;
}

bool IsProven(const MachineLevels& machine, Level level) {
  const LevelProof* proof = ProofOf(machine, level);
  return proof == nullptr || proof->proven;
}

constexpr std::string_view kEmulatedHint =
    "--isolation emulated runs the same guest on a software processor; it is not a hardware "
    "boundary "
    "and does not satisfy this minimum";

std::unexpected<Error> NotProven(const MachineLevels& machine, Level level, std::string_view who) {
  std::string message =
      StrCat(who, " needs level \"", LevelName(level),
             "\", which this machine does not prove: ", ProofOf(machine, level)->figure);
  if (policy::LevelRank(level) >= policy::LevelRank(Level::kMicrovm)) {
    message += StrCat(" (", kEmulatedHint, ")");
  }
  return Fail(Errc::kFailedPrecondition, std::move(message));
}

std::string MinimumText(const policy::Policy& policy) {
  const auto& minimum = policy.isolation.minimum;
  return StrCat("minimum = \"", LevelName(minimum.value), "\" at ", minimum.origin.ToText());
}

Result<LevelChoice> NamedLevel(const policy::Policy& policy, const MachineLevels& machine) {
  const policy::Sourced<Level>& named = *policy.isolation.level;
  const std::string who = named.origin.ToText();
  if (!policy::Satisfies(named.value, policy.isolation.minimum.value)) {
    std::string message = StrCat("level \"", LevelName(named.value), "\" (", who, ") is below the ",
                                 MinimumText(policy));
    if (named.value == Level::kEmulated) message += StrCat(": ", kEmulatedHint);
    return Fail(Errc::kFailedPrecondition, std::move(message));
  }
  if (!IsProven(machine, named.value)) return NotProven(machine, named.value, who);
  return LevelChoice{named.value, who};
}

}  // namespace

Result<LevelChoice> ChooseRunLevel(const policy::Policy& policy, const MachineLevels& machine) {
  if (policy.isolation.level) return NamedLevel(policy, machine);
  const Level minimum = policy.isolation.minimum.value;
  if (policy::Satisfies(Level::kProcess, minimum)) return LevelChoice{Level::kProcess, "default"};
  constexpr std::array kStrongerLevels = {Level::kContainer, Level::kGvisor, Level::kMicrovm,
                                          Level::kConfidential};
  for (const Level level : kStrongerLevels) {
    if (policy::Satisfies(level, minimum) && IsProven(machine, level)) {
      return LevelChoice{level, MinimumText(policy)};
    }
  }
  return NotProven(machine, minimum, MinimumText(policy));
}

}  // namespace soma::plan
