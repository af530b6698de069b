// SPDX-License-Identifier: Apache-2.0
// Wall time as the record spells it: RFC 3339, UTC, six digits: 2026-11-29T18:22:01.123456Z.
#ifndef SOMA_AUDIT_TIME_TEXT_H_
#define SOMA_AUDIT_TIME_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace soma::audit {

inline constexpr std::size_t kTimeTextBytes = 27;

// Times outside 1970–9999 are clamped into it.
std::string FormatTime(WallTime time);
// Exactly what FormatTime writes; else nullopt.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_TIME_TEXT_H_
