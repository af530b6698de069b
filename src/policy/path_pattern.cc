// SPDX-License-Identifier: Apache-2.0
#include "policy/path_pattern.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace soma::policy {

namespace {

// Components of an absolute, normal path; "/" has none.
std::vector<std::string_view> Components(std::string_view path) {
  if (path.size() <= 1) return {};
  return Split(path.substr(1), '/');
}

// The positions in a pattern that the components read so far may have led to. One pass over the
// path answers for all its prefixes, whatever a hostile pattern looks like.
class Positions {
 public:
  explicit Positions(const std::vector<std::string_view>& pattern)
      : pattern_(pattern), at_(pattern.size() + 1, false) {
    Enter(at_, 0);
  }

  bool IsAtEnd() const { return at_[pattern_.size()]; }

  void Read(std::string_view component) {
    std::vector<bool> next(at_.size(), false);
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      if (!at_[i]) continue;
      if (pattern_[i] == "**") {
        Enter(next, i);
      } else if (MatchComponent(pattern_[i], component)) {
        Enter(next, i + 1);
      }
    }
    at_.swap(next);
  }

 private:
  // A `**` may stand for nothing, so that the position behind it is reached as well.
  void Enter(std::vector<bool>& set, std::size_t position) const {
    set[position] = true;
    while (position < pattern_.size() && pattern_[position] == "**") set[++position] = true;
  }

  const std::vector<std::string_view>& pattern_;
  std::vector<bool> at_;
};

}  // namespace

bool HasGlob(std::string_view pattern) { return pattern.contains('*'); }

bool MatchComponent(std::string_view pattern, std::string_view component) {
  std::size_t p = 0;
  std::size_t c = 0;
  std::optional<std::pair<std::size_t, std::size_t>> retry;
  while (c < component.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      retry = {p++, c};
    } else if (p < pattern.size() && pattern[p] == component[c]) {
      ++p;
      ++c;
    } else if (retry) {
      p = retry->first + 1;
      c = ++retry->second;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsWithin(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return path.starts_with('/');
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

std::optional<std::size_t> MatchPrefix(std::string_view pattern, std::string_view path) {
  if (!HasGlob(pattern)) {
    if (!IsWithin(path, pattern)) return std::nullopt;
    return pattern.size();
  }
  const auto pattern_parts = Components(pattern);
  Positions positions(pattern_parts);
  std::optional<std::size_t> longest;
  if (positions.IsAtEnd()) longest = 1;
  for (const std::string_view component : Components(path)) {
    positions.Read(component);
    if (positions.IsAtEnd()) {
      longest = static_cast<std::size_t>(component.data() + component.size() - path.data());
    }
  }
  return longest;
}

}  // namespace soma::policy
