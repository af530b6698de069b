// SPDX-License-Identifier: Apache-2.0
#include "policy/handover.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"
#include "policy/load.h"

namespace soma::policy {

namespace {

using parse::Json;

constexpr std::array<std::string_view, 4> kKindNames = {"system", "user", "project",
                                                        "command_line"};

struct OptionField {
  std::string_view name;
  std::optional<std::string> CommandLineRules::* field;
};
constexpr std::array<OptionField, 5> kOptions = {{{"isolation", &CommandLineRules::isolation},
                                                  {"profile", &CommandLineRules::profile},
                                                  {"memory", &CommandLineRules::memory},
                                                  {"pids", &CommandLineRules::pids},
                                                  {"time", &CommandLineRules::time}}};
struct ListField {
  std::string_view name;
  std::vector<std::string> CommandLineRules::* field;
};
constexpr std::array<ListField, 4> kLists = {{{"read", &CommandLineRules::read},
                                              {"write", &CommandLineRules::write},
                                              {"allow_net", &CommandLineRules::allow_net},
                                              {"set_env", &CommandLineRules::set_env}}};

// Json::Write would replace what is not UTF-8, and the other side would load something else.
Status CheckUtf8(const Handover& handover) {
  bool valid = IsValidUtf8(handover.context.home) && IsValidUtf8(handover.context.workspace);
  for (const Source& source : handover.sources) {
    valid = valid && IsValidUtf8(source.name) && IsValidUtf8(source.text);
  }
  for (const OptionField& option : kOptions) {
    const auto& value = handover.command_line.*option.field;
    valid = valid && (!value || IsValidUtf8(*value));
  }
  for (const ListField& list : kLists) {
    for (const std::string& item : handover.command_line.*list.field) {
      valid = valid && IsValidUtf8(item);
    }
  }
  if (valid) return {};
  return Fail(Errc::kInvalidArgument, "a path, rule or option is not valid UTF-8");
}

Json EncodeRules(const CommandLineRules& rules) {
  Json out = Json::MakeObject();
  for (const OptionField& option : kOptions) {
    if (rules.*option.field) out.Set(option.name, Json(*(rules.*option.field)));
  }
  for (const ListField& list : kLists) {
    Json items = Json::MakeArray();
    for (const std::string& item : rules.*list.field) items.Append(Json(item));
    out.Set(list.name, std::move(items));
  }
  return out;
}

Result<std::string> RequiredString(const Json& object, std::string_view name) {
  SOMA_ASSIGN(std::optional<std::string> value, parse::OptionalString(object, name));
  if (!value) return Fail(Errc::kInvalidArgument, StrCat("handover: ", name, " is missing"));
  return *std::move(value);
}

Result<Source> DecodeSource(const Json& json) {
  Source source;
  SOMA_ASSIGN(const std::string kind, RequiredString(json, "kind"));
  bool known = false;
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] != kind) continue;
    source.kind = static_cast<LayerKind>(i);
    known = true;
  }
  if (!known) return Fail(Errc::kInvalidArgument, "handover: an unknown kind of source");
  SOMA_ASSIGN(const std::string format, RequiredString(json, "format"));
  source.format = format == "json" ? Format::kJson : Format::kToml;
  SOMA_ASSIGN(source.name, RequiredString(json, "name"));
  SOMA_ASSIGN(source.text, RequiredString(json, "text"));
  return source;
}

}  // namespace

Result<std::string> EncodeHandover(const Handover& handover) {
  SOMA_TRY(CheckUtf8(handover));
  Json out = Json::MakeObject();
  out.Set("home", Json(handover.context.home));
  out.Set("workspace", Json(handover.context.workspace));
  Json sources = Json::MakeArray();
  for (const Source& source : handover.sources) {
    Json one = Json::MakeObject();
    one.Set("kind", Json(kKindNames[static_cast<std::size_t>(source.kind)]));
    one.Set("format", Json(source.format == Format::kJson ? "json" : "toml"));
    one.Set("name", Json(source.name));
    one.Set("text", Json(source.text));
    sources.Append(std::move(one));
  }
  out.Set("sources", std::move(sources));
  out.Set("command_line", EncodeRules(handover.command_line));
  return out.Write();
}

Result<Handover> DecodeHandover(std::string_view json) {
  SOMA_ASSIGN(const Json root, parse::ParseJson(json, {.bytes_max = kHandoverBytesMax}));
  Handover out;
  SOMA_ASSIGN(out.context.home, RequiredString(root, "home"));
  SOMA_ASSIGN(out.context.workspace, RequiredString(root, "workspace"));
  const Json* sources = root.Find("sources");
  if (sources == nullptr || sources->AsArray() == nullptr) {
    return Fail(Errc::kInvalidArgument, "handover: sources is missing");
  }
  for (const Json& one : *sources->AsArray()) {
    SOMA_ASSIGN(Source source, DecodeSource(one));
    out.sources.push_back(std::move(source));
  }
  const Json* rules = root.Find("command_line");
  if (rules == nullptr) return Fail(Errc::kInvalidArgument, "handover: command_line is missing");
  for (const OptionField& option : kOptions) {
    SOMA_ASSIGN(out.command_line.*option.field, parse::OptionalString(*rules, option.name));
  }
  for (const ListField& list : kLists) {
    SOMA_ASSIGN(out.command_line.*list.field, parse::OptionalStringList(*rules, list.name));
  }
  return out;
}

}  // namespace soma::policy
