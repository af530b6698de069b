// SPDX-License-Identifier: Apache-2.0
// PathFacts: what the paths of a policy really are on this machine, gathered by `workspace` so that
// `plan` stays pure.
#ifndef SOMA_POLICY_PATH_FACTS_H_
#define SOMA_POLICY_PATH_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace soma::policy {

enum class PathKind : std::uint8_t { kMissing, kDirectory, kFile, kOther };

struct PathFact {
  std::string path;  // as the rule has it: absolute, normal, literal
  std::string real;  // with every symbolic link followed; empty when it is missing
  PathKind kind = PathKind::kMissing;  // of `real`
  std::string link_text;               // when `path` itself is a symbolic link: what it says
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_gid = 0;
};

struct PathFacts {
  PathFact workspace;
  std::vector<PathFact> root;   // the entries of "/"; empty when the policy's fallback is "hide"
  std::vector<PathFact> rules;  // what exists of the paths that the rules name, globs expanded
};

}  // namespace soma::policy

#endif  // SOMA_POLICY_PATH_FACTS_H_
