// SPDX-License-Identifier: Apache-2.0
#include "policy/merge.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/decide.h"
#include "policy/layer.h"
#include "policy/level.h"
#include "policy/model.h"

namespace soma::policy {

namespace {

template <typename T>
void Replace(std::optional<T>& to, const std::optional<T>& from) {
  if (from) to = from;
}

template <typename T>
void TakeSmaller(std::optional<Sourced<T>>& to, const std::optional<Sourced<T>>& from) {
  if (from && (!to || from->value < to->value)) to = from;
}

template <typename T>
void AppendAll(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <typename Apply>
void ForEachLimit(Limits& to, const Limits& from, Apply apply) {
  apply(to.memory_bytes, from.memory_bytes);
  apply(to.pids, from.pids);
  apply(to.cpu_milli, from.cpu_milli);
  apply(to.time, from.time);
  apply(to.disk_bytes, from.disk_bytes);
  apply(to.tmp_bytes, from.tmp_bytes);
}

void RaiseMinimum(Policy& policy, const Layer& layer) {
  if (layer.minimum &&
      LevelRank(layer.minimum->value) > LevelRank(policy.isolation.minimum.value)) {
    policy.isolation.minimum = *layer.minimum;
  }
}

void Ignored(Policy& policy, const Origin& origin, std::string_view what) {
  policy.notices.push_back(
      StrCat(origin.ToText(), ": ", what, " has no effect: this file can only narrow"));
}

void NarrowLevel(Policy& policy, const Layer& layer) {
  if (!layer.level || !layer.level->value) return;
  const Level wanted = *layer.level->value;
  // `auto` may come out as low as `process`, so that is what a level has to reach.
  const Level now = policy.isolation.level ? policy.isolation.level->value : Level::kProcess;
  if (!Satisfies(wanted, now)) {
    Ignored(policy, layer.level->origin, StrCat("level \"", LevelName(wanted), "\""));
    return;
  }
  policy.isolation.level = {wanted, layer.level->origin};
}

void NarrowFilesystem(Policy& policy, const Layer& layer) {
  for (const PathRule& rule : layer.filesystem.rules) {
    if (rule.verdict == PathVerdict::kHide) continue;
    if (VerdictOn(policy, rule.pattern) >= rule.verdict) continue;
    Ignored(policy, rule.origin,
            StrCat(rule.verdict == PathVerdict::kWrite ? "write" : "read", " \"",
                   EscapeForTerminal(rule.pattern), "\""));
  }
  if (layer.filesystem.fallback || !layer.filesystem.rules.empty()) {
    policy.filesystem.push_back(layer.filesystem);
  }
}

void NarrowNetwork(Policy& policy, const Layer& layer) {
  for (const NetworkRule& rule : layer.network.rules) {
    const bool is_name = !rule.target.cidr && !rule.target.host.starts_with('*');
    if (rule.allow && is_name && !DecideLookup(policy, rule.target.host).allowed) {
      Ignored(policy, rule.origin, StrCat("allow \"", EscapeForTerminal(rule.text), "\""));
    }
  }
  if (layer.network.fallback_allow || !layer.network.rules.empty()) {
    policy.network.push_back(layer.network);
  }
}

void NarrowEnvironment(Policy& policy, const Layer& layer) {
  EnvironmentRules kept;
  for (const EnvironmentRule& rule : layer.environment.rules) {
    const bool is_taken =
        rule.kind == EnvironmentRule::Kind::kSet &&
        std::ranges::any_of(policy.environment, [&rule](const EnvironmentRules& earlier) {
          return std::ranges::any_of(earlier.rules, [&rule](const EnvironmentRule& other) {
            return other.kind == EnvironmentRule::Kind::kSet && other.name == rule.name;
          });
        });
    if (is_taken) {
      Ignored(policy, rule.origin, StrCat("set \"", EscapeForTerminal(rule.name), "\""));
    } else {
      kept.rules.push_back(rule);
    }
  }
  if (!kept.rules.empty()) policy.environment.push_back(std::move(kept));
}

void NarrowTask(Policy& policy, const Layer& layer) {
  if (layer.task_profile) {
    if (layer.task_profile->value == TaskProfile::kStrict) {
      policy.task.profile = *layer.task_profile;
    } else if (policy.task.profile.value == TaskProfile::kStrict) {
      Ignored(policy, layer.task_profile->origin, "profile \"rooted\"");
    }
  }
  if (layer.ephemeral) {
    if (layer.ephemeral->value) {
      policy.task.ephemeral = *layer.ephemeral;
    } else if (policy.task.ephemeral.value) {
      Ignored(policy, layer.ephemeral->origin, "ephemeral = false");
    }
  }
}

}  // namespace

Policy EmptyPolicy() {
  Policy policy;
  const Origin origin{"built-in", 0};
  policy.filesystem.push_back(
      {.fallback = Sourced<PathVerdict>{PathVerdict::kHide, origin}, .rules = {}});
  policy.network.push_back({.fallback_allow = Sourced<bool>{false, origin}, .rules = {}});
  policy.environment.emplace_back();
  policy.isolation.minimum.origin = origin;
  policy.task.profile.origin = origin;
  policy.task.ephemeral.origin = origin;
  return policy;
}

void Overlay(Policy& policy, const Layer& layer) {
  if (layer.level) {
    policy.isolation.level.reset();
    if (layer.level->value) policy.isolation.level = {*layer.level->value, layer.level->origin};
  }
  RaiseMinimum(policy, layer);
  Replace(policy.filesystem.front().fallback, layer.filesystem.fallback);
  AppendAll(policy.filesystem.front().rules, layer.filesystem.rules);
  Replace(policy.network.front().fallback_allow, layer.network.fallback_allow);
  AppendAll(policy.network.front().rules, layer.network.rules);
  AppendAll(policy.environment.front().rules, layer.environment.rules);
  ForEachLimit(policy.limits, layer.limits, [](auto& to, const auto& from) { Replace(to, from); });
  if (layer.task_profile) policy.task.profile = *layer.task_profile;
  if (layer.ephemeral) policy.task.ephemeral = *layer.ephemeral;
}

void Narrow(Policy& policy, const Layer& layer) {
  NarrowLevel(policy, layer);
  RaiseMinimum(policy, layer);
  NarrowFilesystem(policy, layer);
  NarrowNetwork(policy, layer);
  NarrowEnvironment(policy, layer);
  ForEachLimit(policy.limits, layer.limits,
               [](auto& to, const auto& from) { TakeSmaller(to, from); });
  NarrowTask(policy, layer);
}

}  // namespace soma::policy
