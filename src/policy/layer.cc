// SPDX-License-Identifier: Apache-2.0
#include "policy/layer.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/document.h"
#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"
#include "policy/path_pattern.h"
#include "policy/section.h"
#include "policy/units.h"

namespace soma::policy {

namespace {

constexpr std::uint64_t kPidsMax = 4'194'304;  // PID_MAX_LIMIT, linux/threads.h
constexpr double kCpusMax = 1024;
constexpr std::size_t kEnvironmentValueMax = std::size_t{128}
                                             << 10;  // MAX_ARG_STRLEN, linux/binfmts.h

std::optional<std::uint64_t> ParsePids(std::string_view text) {
  const auto value = ParseInt<std::uint64_t>(text);
  if (!value || *value == 0 || *value > kPidsMax) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> ParseCpuMilli(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0.01 && value <= kCpusMax)) return std::nullopt;
  return static_cast<std::uint64_t>(value * 1000);
}

std::optional<std::optional<Level>> ParseLevelOrAuto(std::string_view text) {
  if (text == "auto") return std::optional<Level>();
  const auto level = ParseLevel(text);
  if (!level) return std::nullopt;
  return std::optional<Level>(level);
}

// A minimum names a promise; `emulated` is none and `none` can't be one.
std::optional<Level> ParseMinimum(std::string_view text) {
  const auto level = ParseLevel(text);
  if (!level || *level == Level::kNone || *level == Level::kEmulated) return std::nullopt;
  return level;
}

std::optional<PathVerdict> ParseFallback(std::string_view text) {
  if (text == "read") return PathVerdict::kRead;
  if (text == "hide") return PathVerdict::kHide;
  return std::nullopt;
}

std::optional<bool> ParseAllowOrDeny(std::string_view text) {
  if (text == "allow") return true;
  if (text == "deny") return false;
  return std::nullopt;
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= 256 && !name.contains('=') && !name.contains('\0');
}

Status TooMany() { return Fail(Errc::kOutOfRange, StrCat("more than ", kRulesMax, " rules")); }

Status AddPath(Layer& layer, PathVerdict verdict, std::string_view text, const Origin& origin,
               const Context& context) {
  SOMA_ASSIGN(std::string pattern, ParsePathPattern(text, context));
  if (verdict != PathVerdict::kHide && HasGlob(pattern)) {
    return Fail(Errc::kInvalidArgument,
                StrCat("\"", EscapeForTerminal(text), "\" has a *, which only hide understands"));
  }
  if (layer.filesystem.rules.size() >= kRulesMax) return TooMany();
  for (const PathRule& rule : layer.filesystem.rules) {
    if (rule.pattern == pattern && rule.verdict != verdict) {
      return Fail(Errc::kInvalidArgument,
                  StrCat("\"", EscapeForTerminal(text),
                         "\" contradicts the rule for the same path at ", rule.origin.ToText()));
    }
  }
  layer.filesystem.rules.push_back({verdict, std::move(pattern), origin});
  return {};
}

Status AddNetwork(Layer& layer, bool allow, std::string_view text, const Origin& origin) {
  SOMA_ASSIGN(NetworkTarget target, ParseNetworkTarget(text));
  if (layer.network.rules.size() >= kRulesMax) return TooMany();
  for (const NetworkRule& rule : layer.network.rules) {
    if (rule.target == target && rule.allow != allow) {
      return Fail(Errc::kInvalidArgument, StrCat("\"", EscapeForTerminal(text),
                                                 "\" is both allowed and denied (the other is at ",
                                                 rule.origin.ToText(), ")"));
    }
  }
  layer.network.rules.push_back({allow, std::move(target), std::string(text), origin});
  return {};
}

Status AddVariable(Layer& layer, EnvironmentRule rule) {
  using Kind = EnvironmentRule::Kind;
  if (!IsVariableName(rule.name)) {
    return Fail(Errc::kInvalidArgument,
                StrCat("\"", EscapeForTerminal(rule.name), "\" is no variable's name"));
  }
  if (rule.kind == Kind::kSet && (HasGlob(rule.name) || rule.value.contains('\0') ||
                                  rule.value.size() > kEnvironmentValueMax)) {
    return Fail(Errc::kInvalidArgument,
                StrCat("\"", EscapeForTerminal(rule.name), "\" can't be set to that"));
  }
  if (layer.environment.rules.size() >= kRulesMax) return TooMany();
  for (const EnvironmentRule& other : layer.environment.rules) {
    if (other.name != rule.name || other.kind == rule.kind) continue;
    if (other.kind == Kind::kDrop || rule.kind == Kind::kDrop) {
      return Fail(Errc::kInvalidArgument,
                  StrCat("\"", EscapeForTerminal(rule.name),
                         "\" is dropped and also passed or set (", other.origin.ToText(), ")"));
    }
  }
  layer.environment.rules.push_back(std::move(rule));
  return {};
}

Status ReadFilesystem(Layer& layer, const Node* table, const Context& context) {
  Section section(table, "[filesystem]", layer.name);
  layer.filesystem.fallback = section.Parsed("default", "\"read\" or \"hide\"", ParseFallback);
  const auto list = [&](std::string_view key, PathVerdict verdict) {
    section.Strings(key, [&, verdict](const std::string& text, const Origin& origin) {
      return AddPath(layer, verdict, text, origin, context);
    });
  };
  list("read", PathVerdict::kRead);
  list("write", PathVerdict::kWrite);
  list("hide", PathVerdict::kHide);
  return section.Finish();
}

Status ReadNetwork(Layer& layer, const Node* table) {
  Section section(table, "[network]", layer.name);
  layer.network.fallback_allow =
      section.Parsed("default", "\"allow\" or \"deny\"", ParseAllowOrDeny);
  for (const bool allow : {true, false}) {
    section.Strings(allow ? "allow" : "deny", [&](const std::string& text, const Origin& origin) {
      return AddNetwork(layer, allow, text, origin);
    });
  }
  return section.Finish();
}

constexpr std::string_view kSizeWords = "a size such as \"512M\"";

Status ReadLimits(Layer& layer, const Node* table) {
  Section section(table, "[limits]", layer.name);
  Limits& limits = layer.limits;
  limits.memory_bytes = section.Parsed("memory", kSizeWords, ParseByteCount);
  limits.pids = section.Parsed("pids", "a number from 1 to 4194304", ParsePids);
  limits.cpu_milli =
      section.Parsed("cpu", "a number of processors from 0.01 to 1024", ParseCpuMilli);
  limits.time = section.Parsed("time", "a duration such as \"90s\" or \"1h30m\"", ParseDuration);
  limits.disk_bytes = section.Parsed("disk", kSizeWords, ParseByteCount);
  limits.tmp_bytes = section.Parsed("tmp", kSizeWords, ParseByteCount);
  return section.Finish();
}

Status ReadEnvironment(Layer& layer, const Node* table) {
  Section section(table, "[environment]", layer.name);
  using Kind = EnvironmentRule::Kind;
  for (const auto& [key, kind] : {std::pair{"pass", Kind::kPass}, std::pair{"drop", Kind::kDrop}}) {
    section.Strings(key, [&, kind](const std::string& text, const Origin& origin) {
      return AddVariable(layer, {kind, text, "", origin});
    });
  }
  const Node* set = section.Take("set", Node::Kind::kTable);
  if (set != nullptr) {
    for (const Node& value : set->members) {
      if (value.kind != Node::Kind::kString) {
        section.FailAt(value.line, StrCat("set: the value of \"", EscapeForTerminal(value.key),
                                          "\" must be a string, not ", KindName(value.kind)));
        continue;
      }
      const Status status =
          AddVariable(layer, {Kind::kSet, value.key, value.text, {layer.name, value.line}});
      if (!status) section.FailAt(value.line, StrCat("set: ", status.error().message()));
    }
  }
  return section.Finish();
}

Status ReadIsolation(Layer& layer, const Node* table) {
  Section section(table, "[isolation]", layer.name);
  layer.level = section.Parsed(
      "level", "auto, none, process, container, gvisor, microvm, confidential or emulated",
      ParseLevelOrAuto);
  layer.minimum = section.Parsed("minimum", "process, container, gvisor, microvm or confidential",
                                 ParseMinimum);
  SOMA_TRY(section.Finish());
  if (layer.level && layer.minimum && layer.level->value &&
      !Satisfies(*layer.level->value, layer.minimum->value)) {
    return std::unexpected(ErrorAt(
        layer.name, layer.level->origin.line,
        StrCat("level \"", LevelName(*layer.level->value), "\" is below this file's own minimum \"",
               LevelName(layer.minimum->value), "\"")));
  }
  return {};
}

Status ReadTask(Layer& layer, const Node* table) {
  Section section(table, "[task]", layer.name);
  layer.task_profile = section.Parsed("profile", "\"strict\" or \"rooted\"", ParseTaskProfile);
  layer.ephemeral = section.Bool("ephemeral");
  return section.Finish();
}

Status CheckProfileName(const Sourced<std::string>& profile) {
  if (BuiltinProfileText(profile.value)) return {};
  return std::unexpected(
      ErrorAt(profile.origin.where, profile.origin.line,
              StrCat("there is no built-in profile \"", EscapeForTerminal(profile.value),
                     "\" (there are dev, enterprise, consumer)")));
}

}  // namespace

Result<Layer> ReadLayer(const Node& document, std::string_view name, const Context& context) {
  Layer layer;
  layer.name = name;
  Section top(&document, "the file", layer.name);
  layer.profile = top.String("profile");
  layer.locked = top.Bool("locked");
  const Node* isolation = top.Take("isolation", Node::Kind::kTable);
  const Node* filesystem = top.Take("filesystem", Node::Kind::kTable);
  const Node* network = top.Take("network", Node::Kind::kTable);
  const Node* limits = top.Take("limits", Node::Kind::kTable);
  const Node* environment = top.Take("environment", Node::Kind::kTable);
  const Node* task = top.Take("task", Node::Kind::kTable);
  SOMA_TRY(top.Finish());
  if (layer.profile) SOMA_TRY(CheckProfileName(*layer.profile));
  SOMA_TRY(ReadIsolation(layer, isolation));
  SOMA_TRY(ReadFilesystem(layer, filesystem, context));
  SOMA_TRY(ReadNetwork(layer, network));
  SOMA_TRY(ReadLimits(layer, limits));
  SOMA_TRY(ReadEnvironment(layer, environment));
  SOMA_TRY(ReadTask(layer, task));
  return layer;
}

namespace {

// One option of the command line through the parser of its key.
template <typename Parse>
auto ParseOption(const std::optional<std::string>& text, std::string_view option,
                 std::string_view expected, Parse parse)
    -> Result<std::optional<Sourced<typename decltype(parse(std::string_view()))::value_type>>> {
  using Value = Sourced<typename decltype(parse(std::string_view()))::value_type>;
  if (!text) return std::optional<Value>();
  auto value = parse(std::string_view(*text));
  if (!value) {
    return Fail(Errc::kInvalidArgument,
                StrCat(option, " must be ", expected, ", not \"", EscapeForTerminal(*text), "\""));
  }
  return std::optional<Value>(Value{*std::move(value), {std::string(option), 0}});
}

Status AddOptionRules(Layer& layer, const CommandLineRules& rules, const Context& context) {
  for (const std::string& path : rules.read) {
    SOMA_TRY_WHILE(AddPath(layer, PathVerdict::kRead, path, {"--read", 0}, context), "--read");
  }
  for (const std::string& path : rules.write) {
    SOMA_TRY_WHILE(AddPath(layer, PathVerdict::kWrite, path, {"--write", 0}, context), "--write");
  }
  for (const std::string& target : rules.allow_net) {
    SOMA_TRY_WHILE(AddNetwork(layer, true, target, {"--allow-net", 0}), "--allow-net");
  }
  for (const std::string& pair : rules.set_env) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos) {
      return Fail(Errc::kInvalidArgument,
                  StrCat("--env: \"", EscapeForTerminal(pair), "\" is not NAME=VALUE"));
    }
    SOMA_TRY_WHILE(AddVariable(layer, {EnvironmentRule::Kind::kSet,
                                       pair.substr(0, equals),
                                       pair.substr(equals + 1),
                                       {"--env", 0}}),
                   "--env");
  }
  return {};
}

}  // namespace

Result<Layer> ReadCommandLine(const CommandLineRules& rules, const Context& context) {
  Layer layer;
  layer.name = "the command line";
  if (rules.profile) {
    layer.profile = {*rules.profile, {"--profile", 0}};
    SOMA_TRY(CheckProfileName(*layer.profile));
  }
  SOMA_ASSIGN(
      layer.level,
      ParseOption(rules.isolation, "--isolation",
                  "auto, none, process, container, gvisor, microvm, confidential or emulated",
                  ParseLevelOrAuto));
  SOMA_ASSIGN(layer.limits.memory_bytes,
              ParseOption(rules.memory, "--memory", kSizeWords, ParseByteCount));
  SOMA_ASSIGN(layer.limits.pids,
              ParseOption(rules.pids, "--pids", "a number from 1 to 4194304", ParsePids));
  SOMA_ASSIGN(layer.limits.time,
              ParseOption(rules.time, "--timeout", "a duration such as \"90s\"", ParseDuration));
  SOMA_TRY(AddOptionRules(layer, rules, context));
  return layer;
}

}  // namespace soma::policy
