// SPDX-License-Identifier: Apache-2.0
// Matching paths against the patterns of path rules. Pure; internal to the room `policy` and to
// `workspace`, which expands globs.
#ifndef SOMA_POLICY_PATH_PATTERN_H_
#define SOMA_POLICY_PATH_PATTERN_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace soma::policy {

bool HasGlob(std::string_view pattern);

// Whether one component matches one pattern component, in which only `*` is special.
bool MatchComponent(std::string_view pattern, std::string_view component);

// How many bytes of `path` (absolute, normal) the pattern names, when it names the path or an
// ancestor of it; "/" names every path with length 1. For a glob the longest such prefix counts.
// nullopt: no match.
std::optional<std::size_t> MatchPrefix(std::string_view pattern, std::string_view path);

// Whether `path` is `ancestor` or below it; both absolute and normal.
bool IsWithin(std::string_view path, std::string_view ancestor);

}  // namespace soma::policy

#endif  // SOMA_POLICY_PATH_PATTERN_H_
