// SPDX-License-Identifier: Apache-2.0
// RFC 3339 timestamps in UTC. Pure, untrusted input.
#ifndef SOMA_PARSE_TIMESTAMP_H_
#define SOMA_PARSE_TIMESTAMP_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace soma::parse {

// "2026-11-29T18:10:00.123Z": milliseconds, cut, because that is what SDKs can hold.
std::string FormatTimestamp(WallTime time);
// Nanoseconds beyond microseconds are cut; offsets other than Z are understood.
std::optional<WallTime> ParseTimestamp(std::string_view text);

}  // namespace soma::parse

#endif  // SOMA_PARSE_TIMESTAMP_H_
