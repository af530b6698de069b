// SPDX-License-Identifier: Apache-2.0
// The names in a directory.
#ifndef SOMA_GUEST_DIRECTORY_NAMES_H_
#define SOMA_GUEST_DIRECTORY_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace soma::guest {

// More names in one directory are refused (kResourceExhausted).
inline constexpr std::size_t kDirectoryNamesMax = 200'000;

// Sorted by bytes, without "." and "..".
Result<std::vector<std::string>> SortedNames(const std::string& path);

}  // namespace soma::guest

#endif  // SOMA_GUEST_DIRECTORY_NAMES_H_
