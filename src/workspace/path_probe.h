// SPDX-License-Identifier: Apache-2.0
// Looks at the disk for what `plan` must know: the workspace, the paths that a policy's rules name,
// the entries of "/". Reads only names and types, never contents; leaves no descriptor open.
#ifndef SOMA_WORKSPACE_PATH_PROBE_H_
#define SOMA_WORKSPACE_PATH_PROBE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/model.h"
#include "policy/path_facts.h"

namespace soma::workspace {

// Entries looked at while the globs of one policy are expanded. A tree beyond it refuses to start:
// a rule that is kept only in part of a tree is not kept.
inline constexpr std::size_t kGlobEntriesMax = 200'000;

// Checks a directory that is to become the workspace, and gives its absolute real path. `path` may
// be relative. kInvalidArgument, with one clear line, for: a symbolic link, something else than a
// directory, "/", a place that the system or every user shares, the home directory itself or a
// parent of it, and names with control characters or invalid UTF-8. Links in parents are followed.
Result<std::string> CheckWorkspace(std::string_view path, std::string_view home);

// The home directory by its real name; "" when $HOME names none, or "/" (as for some services).
std::string RealHome(const std::string& home);

// What `path` (absolute) is. A path that can't be looked at counts as missing.
policy::PathFact LookAt(const std::string& path);

// `path` with the symbolic links of all that exists of it followed.
std::string RealPlace(const std::string& path);

Result<policy::PathFacts> GatherPathFacts(const policy::Policy& policy);

}  // namespace soma::workspace

#endif  // SOMA_WORKSPACE_PATH_PROBE_H_
