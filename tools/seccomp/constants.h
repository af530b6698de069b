// SPDX-License-Identifier: Apache-2.0
// The C constants that the seccomp lists may use, taken from the system's headers.
#ifndef SOMA_TOOLS_SECCOMP_CONSTANTS_H_
#define SOMA_TOOLS_SECCOMP_CONSTANTS_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace soma::seccomp {

// A constant's value, or that of a number (decimal or 0x...). Joined by `|` they are or-ed.
std::optional<std::uint64_t> ParseValue(std::string_view text);

// An errno by its name.
std::optional<std::uint16_t> ParseErrno(std::string_view name);

}  // namespace soma::seccomp

#endif  // SOMA_TOOLS_SECCOMP_CONSTANTS_H_
