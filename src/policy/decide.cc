// SPDX-License-Identifier: Apache-2.0
// Paths and environment. The network's questions are in decide_network.cc.
#include "policy/decide.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "policy/model.h"
#include "policy/path_pattern.h"

namespace soma::policy {

namespace {

constexpr std::size_t kPathBytesMax = 4096;  // PATH_MAX, linux/limits.h

// The rule of one rule set that decides on `path`; null: its fallback does.
const PathRule* DecidingRule(const FilesystemRules& rules, std::string_view path) {
  const PathRule* best = nullptr;
  std::size_t best_length = 0;
  for (const PathRule& rule : rules.rules) {
    const auto length = MatchPrefix(rule.pattern, path);
    if (length && *length >= best_length) {
      best = &rule;
      best_length = *length;
    }
  }
  return best;
}

PathVerdict VerdictOf(const FilesystemRules& rules, const PathRule* rule) {
  if (rule != nullptr) return rule->verdict;
  return rules.fallback ? rules.fallback->value : PathVerdict::kWrite;
}

std::string Quoted(std::string_view text) { return StrCat("\"", EscapeForTerminal(text), "\""); }

std::string PathRemedy(const Policy& policy, bool is_base, const Origin& origin,
                       std::string_view path, Access access) {
  if (!is_base) return StrCat("change or remove the rule at ", origin.ToText());
  if (policy.locked) return StrCat("ask whoever owns ", policy.locked->where);
  const bool is_write = access == Access::kWrite;
  return StrCat(is_write ? "--write " : "--read ", EscapeForTerminal(path), ", or ",
                is_write ? "write" : "read", " = [", Quoted(path), "] under [filesystem]");
}

}  // namespace

std::string_view VerdictWord(PathVerdict verdict) {
  constexpr std::array<std::string_view, 3> kWords = {"hide", "read", "write"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::string Origin::ToText() const {
  if (line == 0) return where;
  return StrCat(where, ":", line);
}

std::optional<std::string> NormalPath(std::string_view path) {
  if (!path.starts_with('/') || path.size() > kPathBytesMax || path.contains('\0')) {
    return std::nullopt;
  }
  std::string out;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
      continue;
    }
    out += '/';
    out += part;
  }
  if (out.empty()) out = "/";
  return out;
}

PathVerdict VerdictOn(const Policy& policy, std::string_view path) {
  const auto normal = NormalPath(path);
  if (!normal) return PathVerdict::kHide;
  PathVerdict strictest = PathVerdict::kWrite;
  for (const FilesystemRules& rules : policy.filesystem) {
    strictest = std::min(strictest, VerdictOf(rules, DecidingRule(rules, *normal)));
  }
  return strictest;
}

Decision DecidePath(const Policy& policy, std::string_view path, Access access) {
  const auto normal = NormalPath(path);
  if (!normal)
    return {.allowed = false, .rule = "not an absolute path", .origin = {}, .remedy = ""};
  const PathVerdict needed = access == Access::kWrite ? PathVerdict::kWrite : PathVerdict::kRead;
  Decision decision{.allowed = true, .rule = {}, .origin = {}, .remedy = {}};
  for (std::size_t i = 0; i < policy.filesystem.size(); ++i) {
    const FilesystemRules& rules = policy.filesystem[i];
    const PathRule* rule = DecidingRule(rules, *normal);
    const PathVerdict verdict = VerdictOf(rules, rule);
    // Of the layers that allow it the base is named; the first that refuses ends the question.
    if (verdict >= needed && i > 0) continue;
    decision.allowed = verdict >= needed;
    if (rule != nullptr) {
      decision.rule = StrCat(VerdictWord(verdict), " ", Quoted(rule->pattern));
      decision.origin = rule->origin;
    } else {
      decision.rule = StrCat("default ", Quoted(VerdictWord(verdict)));
      if (rules.fallback) decision.origin = rules.fallback->origin;
    }
    if (decision.allowed) continue;
    decision.remedy = PathRemedy(policy, i == 0, decision.origin, *normal, access);
    return decision;
  }
  return decision;
}

bool PassesEnvironment(const Policy& policy, std::string_view name) {
  for (const EnvironmentRules& layer : policy.environment) {
    bool has_pass_rules = false;
    bool passed = false;
    for (const EnvironmentRule& rule : layer.rules) {
      const bool matches = MatchComponent(rule.name, name);
      if (rule.kind == EnvironmentRule::Kind::kDrop && matches) return false;
      if (rule.kind != EnvironmentRule::Kind::kPass) continue;
      has_pass_rules = true;
      passed = passed || matches;
    }
    // A narrowing layer without pass rules has no opinion; the base passes only what it lists.
    if (!passed && (has_pass_rules || &layer == &policy.environment.front())) return false;
  }
  return true;
}

}  // namespace soma::policy
