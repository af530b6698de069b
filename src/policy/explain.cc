// SPDX-License-Identifier: Apache-2.0
#include "policy/explain.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "parse/json.h"
#include "policy/decide.h"
#include "policy/level.h"
#include "policy/model.h"
#include "policy/units.h"

namespace soma::policy {

namespace {

using parse::Json;
using Lines = std::vector<std::string>;

std::string From(const Origin& origin) { return StrCat("  (", origin.ToText(), ")"); }

// What stands over the first element of a list of layers, and over the others.
std::string LayerTitle(std::string_view what, std::size_t index) {
  return index == 0 ? StrCat(what, ":") : StrCat(what, ", narrowed further:");
}

void ExplainIsolation(const Policy& policy, Lines& out) {
  const auto& isolation = policy.isolation;
  if (isolation.level) {
    out.push_back(
        StrCat("level: ", LevelName(isolation.level->value), From(isolation.level->origin)));
  } else {
    out.emplace_back(
        "level: auto (soma run takes process, or the weakest one that satisfies the minimum)");
  }
  if (isolation.minimum.value == Level::kNone) {
    out.emplace_back("minimum: none; \"none\" itself only by that word");
  } else {
    out.push_back(
        StrCat("minimum: ", LevelName(isolation.minimum.value), From(isolation.minimum.origin)));
  }
}

void ExplainFilesystem(const Policy& policy, Lines& out) {
  for (std::size_t i = 0; i < policy.filesystem.size(); ++i) {
    const FilesystemRules& layer = policy.filesystem[i];
    out.push_back(LayerTitle("files", i));
    for (const PathVerdict verdict :
         {PathVerdict::kWrite, PathVerdict::kRead, PathVerdict::kHide}) {
      for (const PathRule& rule : layer.rules) {
        if (rule.verdict != verdict) continue;
        out.push_back(StrCat("  ", VerdictWord(verdict), " ", EscapeForTerminal(rule.pattern),
                             From(rule.origin)));
      }
    }
    if (layer.fallback) {
      out.push_back(StrCat("  everything else: ", VerdictWord(layer.fallback->value),
                           From(layer.fallback->origin)));
    }
  }
}

void ExplainNetwork(const Policy& policy, Lines& out) {
  if (!MayUseNetwork(policy)) out.emplace_back("network: nothing gets out");
  for (std::size_t i = 0; i < policy.network.size(); ++i) {
    const NetworkRules& layer = policy.network[i];
    if (layer.rules.empty() && i == 0 && !MayUseNetwork(policy)) continue;
    out.push_back(LayerTitle("network", i));
    for (const NetworkRule& rule : layer.rules) {
      out.push_back(StrCat("  ", rule.allow ? "allow " : "deny ", EscapeForTerminal(rule.text),
                           From(rule.origin)));
    }
    if (layer.fallback_allow) {
      out.push_back(StrCat("  everything else: ", layer.fallback_allow->value ? "allow" : "deny",
                           From(layer.fallback_allow->origin)));
    }
  }
}

template <typename T, typename Format>
void ExplainLimit(Lines& out, std::string_view name, const std::optional<Sourced<T>>& limit,
                  Format format) {
  if (limit) out.push_back(StrCat("  ", name, " ", format(limit->value), From(limit->origin)));
}

std::string Plain(std::uint64_t value) { return StrCat(value); }
std::string Cpus(std::uint64_t milli) {
  return StrCat(milli / 1000, ".", milli % 1000 / 100, milli % 100 / 10);
}

void ExplainLimits(const Policy& policy, Lines& out) {
  out.emplace_back("limits:");
  ExplainLimit(out, "memory", policy.limits.memory_bytes, FormatByteCount);
  ExplainLimit(out, "processes", policy.limits.pids, Plain);
  ExplainLimit(out, "processors", policy.limits.cpu_milli, Cpus);
  ExplainLimit(out, "time", policy.limits.time, FormatDuration);
  ExplainLimit(out, "disk", policy.limits.disk_bytes, FormatByteCount);
  ExplainLimit(out, "each private directory", policy.limits.tmp_bytes, FormatByteCount);
}

void ExplainEnvironment(const Policy& policy, Lines& out) {
  for (std::size_t i = 0; i < policy.environment.size(); ++i) {
    out.push_back(LayerTitle("environment", i));
    for (const EnvironmentRule& rule : policy.environment[i].rules) {
      std::string line;
      switch (rule.kind) {
        case EnvironmentRule::Kind::kPass:
          line = "  pass ";
          break;
        case EnvironmentRule::Kind::kDrop:
          line = "  drop ";
          break;
        case EnvironmentRule::Kind::kSet:
          line = "  set ";
          break;
      }
      out.push_back(StrCat(line, EscapeForTerminal(rule.name), From(rule.origin)));
    }
  }
}

Json RuleJson(std::string_view kind, std::string_view what, const Origin& origin) {
  Json out = Json::MakeObject();
  out.Set(kind, Json(what));
  out.Set("origin", Json(origin.ToText()));
  return out;
}

Json FilesystemJson(const Policy& policy) {
  Json layers = Json::MakeArray();
  for (const FilesystemRules& layer : policy.filesystem) {
    Json rules = Json::MakeArray();
    for (const PathRule& rule : layer.rules) {
      rules.Append(RuleJson(VerdictWord(rule.verdict), rule.pattern, rule.origin));
    }
    Json one = Json::MakeObject();
    if (layer.fallback) one.Set("default", Json(VerdictWord(layer.fallback->value)));
    one.Set("rules", std::move(rules));
    layers.Append(std::move(one));
  }
  return layers;
}

Json NetworkJson(const Policy& policy) {
  Json layers = Json::MakeArray();
  for (const NetworkRules& layer : policy.network) {
    Json rules = Json::MakeArray();
    for (const NetworkRule& rule : layer.rules) {
      rules.Append(RuleJson(rule.allow ? "allow" : "deny", rule.text, rule.origin));
    }
    Json one = Json::MakeObject();
    if (layer.fallback_allow)
      one.Set("default", Json(layer.fallback_allow->value ? "allow" : "deny"));
    one.Set("rules", std::move(rules));
    layers.Append(std::move(one));
  }
  return layers;
}

Json LimitsJson(const Limits& limits) {
  Json out = Json::MakeObject();
  const auto set = [&out](std::string_view name, const auto& limit) {
    if (limit) out.Set(name, Json(static_cast<std::uint64_t>(limit->value)));
  };
  set("memory_bytes", limits.memory_bytes);
  set("pids", limits.pids);
  set("cpu_milli", limits.cpu_milli);
  if (limits.time) out.Set("time_ms", Json(std::int64_t{limits.time->value.count()}));
  set("disk_bytes", limits.disk_bytes);
  set("tmp_bytes", limits.tmp_bytes);
  return out;
}

}  // namespace

std::vector<std::string> ExplainPolicy(const Policy& policy) {
  Lines out = {StrCat("profile: ", policy.profile),
               StrCat("workspace: ", EscapeForTerminal(policy.workspace))};
  if (policy.locked) {
    out.push_back(StrCat("locked: what comes after ", policy.locked->ToText(), " can only narrow"));
  }
  ExplainIsolation(policy, out);
  ExplainFilesystem(policy, out);
  ExplainNetwork(policy, out);
  ExplainLimits(policy, out);
  ExplainEnvironment(policy, out);
  out.push_back(StrCat("task: ", TaskProfileName(policy.task.profile.value),
                       policy.task.ephemeral.value ? ", ephemeral" : ""));
  for (const std::string& notice : policy.notices) out.push_back(StrCat("note: ", notice));
  return out;
}

std::string PolicyJson(const Policy& policy) {
  Json out = Json::MakeObject();
  out.Set("profile", Json(policy.profile));
  out.Set("workspace", Json(policy.workspace));
  out.Set("level",
          Json(policy.isolation.level ? LevelName(policy.isolation.level->value) : "auto"));
  out.Set("minimum", Json(LevelName(policy.isolation.minimum.value)));
  if (policy.locked) out.Set("locked", Json(policy.locked->ToText()));
  out.Set("filesystem", FilesystemJson(policy));
  out.Set("network", NetworkJson(policy));
  out.Set("limits", LimitsJson(policy.limits));
  out.Set("task_profile", Json(TaskProfileName(policy.task.profile.value)));
  out.Set("ephemeral", Json(policy.task.ephemeral.value));
  Json notices = Json::MakeArray();
  for (const std::string& notice : policy.notices) notices.Append(Json(notice));
  out.Set("notices", std::move(notices));
  return out.Write();
}

std::string ExplainDecision(const Decision& decision) {
  std::string out = StrCat(decision.allowed ? "allowed by " : "refused by ", decision.rule);
  if (!decision.origin.where.empty()) out += StrCat(" (", decision.origin.ToText(), ")");
  if (!decision.remedy.empty()) out += StrCat("; to allow: ", decision.remedy);
  return out;
}

}  // namespace soma::policy
