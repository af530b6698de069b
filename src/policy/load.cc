// SPDX-License-Identifier: Apache-2.0
#include "policy/load.h"

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/builtin.h"
#include "policy/document.h"
#include "policy/layer.h"
#include "policy/merge.h"
#include "policy/model.h"

namespace soma::policy {

namespace {

constexpr std::string_view kDefaultProfile = "dev";

Result<Layer> ReadSource(const Source& source, const Context& context) {
  const std::string name = EscapeForTerminal(source.name);
  if (source.text.size() > kPolicyFileBytesMax) {
    return std::unexpected(
        ErrorAt(name, 0, StrCat("is larger than ", kPolicyFileBytesMax / 1024, " KiB")));
  }
  SOMA_ASSIGN(const Node document, source.format == Format::kJson
                                       ? ParseJsonDocument(source.text, name)
                                       : ParseTomlDocument(source.text, name));
  SOMA_ASSIGN(Layer layer, ReadLayer(document, name, context));
  if (source.kind == LayerKind::kProject && (layer.profile || layer.locked)) {
    const Origin& origin = layer.profile ? layer.profile->origin : layer.locked->origin;
    return std::unexpected(ErrorAt(name, origin.line,
                                   StrCat(layer.profile ? "profile" : "locked",
                                          " belongs into a system or user file: a project file can "
                                          "only narrow")));
  }
  return layer;
}

Result<Layer> BuiltinLayer(std::string_view profile, const Context& context) {
  const auto document = BuiltinDocument(profile);
  if (!document) return Fail(Errc::kInternal, "a checked profile is missing");
  // A machine without a home directory for the caller still has the profile: "~" then stands for a
  // path that nothing has.
  Context with_home = context;
  if (with_home.home.empty()) with_home.home = "/nonexistent";
  return ReadLayer(*document, StrCat("built-in ", profile), with_home);
}

// What a locked policy leaves to the command line: less, never more.
Status CheckLockedCommandLine(const Policy& policy, const CommandLineRules& rules) {
  const std::string why = StrCat(" is refused: ", policy.locked->ToText(), " locks the policy");
  if (rules.profile) return Fail(Errc::kPermissionDenied, StrCat("--profile", why));
  if (!rules.read.empty()) return Fail(Errc::kPermissionDenied, StrCat("--read", why));
  if (!rules.write.empty()) return Fail(Errc::kPermissionDenied, StrCat("--write", why));
  if (!rules.allow_net.empty()) return Fail(Errc::kPermissionDenied, StrCat("--allow-net", why));
  return {};
}

void Apply(Policy& policy, const Layer& layer, bool may_widen) {
  if (may_widen && !policy.locked) {
    Overlay(policy, layer);
  } else {
    Narrow(policy, layer);
  }
  if (layer.locked && layer.locked->value && !policy.locked) policy.locked = layer.locked->origin;
}

void MakeWorkspaceWritable(Policy& policy) {
  policy.filesystem.front().rules.push_back(
      {PathVerdict::kWrite, policy.workspace, {"the workspace", 0}});
}

}  // namespace

Result<Policy> Load(const Context& context, std::span<const Source> sources,
                    const CommandLineRules& command_line) {
  std::vector<Layer> layers;
  std::string profile(kDefaultProfile);
  for (const Source& source : sources) {
    SOMA_ASSIGN(Layer layer, ReadSource(source, context));
    if (layer.profile) profile = layer.profile->value;
    layers.push_back(std::move(layer));
  }
  SOMA_ASSIGN(const Layer options, ReadCommandLine(command_line, context));
  if (options.profile) profile = options.profile->value;
  SOMA_ASSIGN(const Layer builtin, BuiltinLayer(profile, context));

  Policy policy = EmptyPolicy();
  policy.profile = profile;
  policy.workspace = context.workspace;
  Overlay(policy, builtin);
  MakeWorkspaceWritable(policy);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Apply(policy, layers[i], sources[i].kind != LayerKind::kProject);
  }
  if (policy.locked) SOMA_TRY(CheckLockedCommandLine(policy, command_line));
  Apply(policy, options, true);
  return policy;
}

Format FormatOfFile(std::string_view path) {
  return path.ends_with(".json") ? Format::kJson : Format::kToml;
}

}  // namespace soma::policy
