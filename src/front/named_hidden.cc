// SPDX-License-Identifier: Apache-2.0
#include "front/named_hidden.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/decide.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "walls/lexical_path.h"
#include "workspace/path_probe.h"

namespace soma::front {

namespace {

// What ends a path in a shell's script; '$' is none, for $HOME.
constexpr std::string_view kBetween = " \t\n'\"`;|&<>()=,:";

// The absolute path that a piece of a command line may mean; empty for an option.
std::string PathOf(std::string_view piece, const NamedHiddenInputs& inputs) {
  if (piece.empty() || piece.front() == '-') return {};
  for (const std::string_view prefix : {"~/", "$HOME/", "${HOME}/"}) {
    if (!piece.starts_with(prefix)) continue;
    if (inputs.home.empty()) return {};
    return walls::JoinLexically(inputs.home, piece.substr(prefix.size()));
  }
  return walls::JoinLexically(inputs.directory, piece);
}

}  // namespace

std::vector<HiddenName> NamedHidden(const NamedHiddenInputs& inputs) {
  std::vector<HiddenName> found;
  const auto look = [&](std::string_view piece) {
    const std::string path = PathOf(piece, inputs);
    if (path.empty() || found.size() == kHiddenNamesMax) return;
    const policy::Decision decision = DecidePath(inputs.policy, path, policy::Access::kRead);
    if (decision.allowed || workspace::LookAt(path).kind == policy::PathKind::kMissing) return;
    if (std::ranges::find(found, path, &HiddenName::path) != found.end()) return;
    std::string rule = decision.rule;
    if (!decision.origin.where.empty()) rule += StrCat(" (", decision.origin.ToText(), ")");
    found.push_back({path, std::move(rule), decision.remedy});
  };
  for (const std::string& word : inputs.words) {
    look(word);
    std::string_view rest = word;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of(kBetween), rest.size());
      if (end != word.size()) look(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return found;
}

}  // namespace soma::front
