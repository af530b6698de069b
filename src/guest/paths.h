// SPDX-License-Identifier: Apache-2.0
// Paths as requests name them: `~` and `~/x` start at the user's home, relative ones at the default
// workdir or else the home; the result is absolute and clean ("//", ".", ".." resolved by text).
// Pure.
#ifndef SOMA_GUEST_PATHS_H_
#define SOMA_GUEST_PATHS_H_

#include <string>
#include <string_view>

#include "base/result.h"

namespace soma::guest {

// Removes "//", "." and ".." from an absolute path by text alone, as Go's filepath.Clean does.
std::string CleanPath(std::string_view path);

// kInvalidArgument for a path with a NUL byte. "" is the base itself.
Result<std::string> ResolvePath(std::string_view path, std::string_view base,
                                std::string_view home);

// "/a/b" -> "/a"; "/" -> "/".
std::string ParentOf(std::string_view clean_path);
// "/a/b" -> "b"; "/" -> "/".
std::string NameOf(std::string_view clean_path);

}  // namespace soma::guest

#endif  // SOMA_GUEST_PATHS_H_
