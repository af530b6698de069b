// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people write them in a policy: "512M", "2G", "10m", "1h30m".
//
// Pure. Input is foreign: at most 32 characters are looked at, overflow is an error.
#ifndef SOMA_POLICY_UNITS_H_
#define SOMA_POLICY_UNITS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace soma::policy {

// Digits with an optional suffix K, M, G or T (powers of 1024; "KiB", "MB" and lower case are the
// same). nullopt for anything else, for 0 and for more than 2^62.
std::optional<std::uint64_t> ParseByteCount(std::string_view text);

// One or more of digits + unit (ms, s, m, h, d), from the larger to the smaller or in any order;
// nullopt for anything else, for 0 and for more than 365 days. Digits alone are seconds.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

// The shortest text that the parsers above read back as the same value.
std::string FormatByteCount(std::uint64_t bytes);
std::string FormatDuration(std::chrono::milliseconds duration);

}  // namespace soma::policy

#endif  // SOMA_POLICY_UNITS_H_
