// SPDX-License-Identifier: Apache-2.0
#include "policy/environment.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/decide.h"
#include "policy/model.h"

namespace soma::policy {

void SetVariable(std::vector<std::string>& environment, std::string_view name,
                 std::string_view value) {
  std::string entry = StrCat(name, "=", value);
  const auto found = std::ranges::find_if(environment, [name](const std::string& other) {
    return other.size() > name.size() && other.starts_with(name) && other[name.size()] == '=';
  });
  if (found != environment.end()) {
    *found = std::move(entry);
  } else {
    environment.push_back(std::move(entry));
  }
}

std::vector<std::string> ResolveEnvironment(const Policy& policy,
                                            std::span<const std::string_view> host) {
  std::vector<std::string> out;
  for (const std::string_view entry : host) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    if (PassesEnvironment(policy, entry.substr(0, equals))) out.emplace_back(entry);
  }
  for (const EnvironmentRules& layer : policy.environment) {
    for (const EnvironmentRule& rule : layer.rules) {
      if (rule.kind == EnvironmentRule::Kind::kSet) SetVariable(out, rule.name, rule.value);
    }
  }
  return out;
}

}  // namespace soma::policy
