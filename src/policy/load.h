// SPDX-License-Identifier: Apache-2.0
// From files to a Policy. Pure: the caller reads the files (room `front`, bounded) and hands in
// their text; nothing here touches the disk.
//
// A file that is not fully understood is an error with "file:line": unknown keys, wrong types,
// contradictions (one path in two lists, one target allowed and denied, one variable set and
// dropped), sizes beyond the bounds below. Input is untrusted: a project file comes from the tree
// that the agent works on.
#ifndef SOMA_POLICY_LOAD_H_
#define SOMA_POLICY_LOAD_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/model.h"

namespace soma::policy {

inline constexpr std::size_t kPolicyFileBytesMax = std::size_t{256} << 10;
inline constexpr std::size_t kRulesMax = 4096;  // rules in one file
inline constexpr std::size_t kPatternBytesMax = 4096;

enum class Format : std::uint8_t { kToml, kJson };

// Where a layer comes from decides how it is merged: kProject may only narrow.
enum class LayerKind : std::uint8_t { kSystem, kUser, kProject, kCommandLine };

struct Source {
  LayerKind kind = LayerKind::kUser;
  Format format = Format::kToml;
  std::string name;  // for messages: the path
  std::string text;
};

// What is taken from the command line itself; each string is in the syntax of the file's lists.
struct CommandLineRules {
  std::optional<std::string> isolation;
  std::optional<std::string> profile;
  std::vector<std::string> read;
  std::vector<std::string> write;
  std::vector<std::string> allow_net;
  std::vector<std::string> set_env;  // K=V
  std::optional<std::string> memory;
  std::optional<std::string> pids;
  std::optional<std::string> time;
};

struct Context {
  std::string home;       // absolute and normal; "" when there is none: "~" is then an error
  std::string workspace;  // absolute, normal; relative paths start here
};

// Merges built-in profile → sources in the order given → command line. The profile is the command
// line's, else the last one that a system or user file names, else "dev".
Result<Policy> Load(const Context& context, std::span<const Source> sources,
                    const CommandLineRules& command_line);

// ".json" is JSON, everything else TOML.
Format FormatOfFile(std::string_view path);

// dev, enterprise, consumer.
std::span<const std::string_view> BuiltinProfiles();
// The TOML text of a built-in profile; nullopt for another name.
std::optional<std::string_view> BuiltinProfileText(std::string_view name);

}  // namespace soma::policy

#endif  // SOMA_POLICY_LOAD_H_
