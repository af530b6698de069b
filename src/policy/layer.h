// SPDX-License-Identifier: Apache-2.0
// Layer: what one policy file (or the command line) says, checked but not yet merged. Internal to
// the room.
#ifndef SOMA_POLICY_LAYER_H_
#define SOMA_POLICY_LAYER_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/document.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {

struct Layer {
  std::string name;
  std::optional<Sourced<std::string>> profile;
  std::optional<Sourced<bool>> locked;
  std::optional<Sourced<std::optional<Level>>> level;  // nullopt inside: "auto"
  std::optional<Sourced<Level>> minimum;
  FilesystemRules filesystem;
  NetworkRules network;
  EnvironmentRules environment;
  Limits limits;
  std::optional<Sourced<TaskProfile>> task_profile;
  std::optional<Sourced<bool>> ephemeral;
};

// Reads a document; every key and type is checked, then the contradictions.
Result<Layer> ReadLayer(const Node& document, std::string_view name, const Context& context);
Result<Layer> ReadCommandLine(const CommandLineRules& rules, const Context& context);

// The parsers of single rules, for both of the above. `context` gives "~" and relative paths a
// place.
Result<std::string> ParsePathPattern(std::string_view text, const Context& context);
Result<NetworkTarget> ParseNetworkTarget(std::string_view text);

}  // namespace soma::policy

#endif  // SOMA_POLICY_LAYER_H_
