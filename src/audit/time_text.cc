// SPDX-License-Identifier: Apache-2.0
#include "audit/time_text.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace soma::audit {

namespace {

void AppendPadded(std::string& out, std::uint64_t value, std::size_t width) {
  const std::string digits = StrCat(value);
  out.append(width - std::min(width, digits.size()), '0');
  out += digits;
}

}  // namespace

std::string FormatTime(WallTime time) {
  using std::chrono::days;
  using std::chrono::floor;
  // 9999-12-31T23:59:59.999999Z in microseconds since 1970.
  constexpr WallTime kLast{std::chrono::microseconds(253402300799999999)};
  time = std::clamp(time, WallTime{}, kLast);
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  auto rest = static_cast<std::uint64_t>((time - day).count());
  std::string out;
  out.reserve(kTimeTextBytes);
  AppendPadded(out, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  out += '-';
  AppendPadded(out, static_cast<unsigned>(date.month()), 2);
  out += '-';
  AppendPadded(out, static_cast<unsigned>(date.day()), 2);
  constexpr std::uint64_t kHour = 3'600'000'000;
  constexpr std::uint64_t kMinute = 60'000'000;
  constexpr std::uint64_t kSecond = 1'000'000;
  for (const auto& [unit, mark] : {std::pair{kHour, 'T'}, {kMinute, ':'}, {kSecond, ':'}}) {
    out += mark;
    AppendPadded(out, rest / unit, 2);
    rest %= unit;
  }
  out += '.';
  AppendPadded(out, rest, 6);
  out += 'Z';
  return out;
}

std::optional<WallTime> ParseTime(std::string_view text) {
  if (text.size() != kTimeTextBytes) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t size) {
    return ParseInt<unsigned>(text.substr(at, size)).value_or(0);
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number(0, 4))),
                                         std::chrono::month(number(5, 2)),
                                         std::chrono::day(number(8, 2)));
  if (!date.ok()) return std::nullopt;
  const WallTime time = std::chrono::sys_days(date) + std::chrono::hours(number(11, 2)) +
                        std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
                        std::chrono::microseconds(number(20, 6));
  // One spelling only: whatever else the text holds (signs, other marks) shows here.
  if (FormatTime(time) != text) return std::nullopt;
  return time;
}

}  // namespace soma::audit
