// SPDX-License-Identifier: Apache-2.0
#include "parse/timestamp.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"

namespace soma::parse {
namespace {

using std::chrono::microseconds;

std::string Digits(long long value, std::size_t width) {
  std::string text = StrCat(value);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

// Cuts `width` digits and the character after them off the front.
std::optional<int> TakeDigits(std::string_view& text, std::size_t width, char after) {
  if (text.size() < width + (after != 0 ? 1 : 0)) return std::nullopt;
  const auto value = ParseInt<int>(text.substr(0, width));
  if (!value || *value < 0 || (after != 0 && text[width] != after)) return std::nullopt;
  text.remove_prefix(width + (after != 0 ? 1 : 0));
  return value;
}

// ".123456789" at the front, as microseconds.
std::optional<microseconds> TakeFraction(std::string_view& text) {
  if (!text.starts_with('.')) return microseconds(0);
  text.remove_prefix(1);
  std::size_t count = 0;
  long long value = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') {
    if (count < 6) value = value * 10 + (text[count] - '0');
    ++count;
  }
  if (count == 0 || count > 12) return std::nullopt;
  for (std::size_t i = count; i < 6; ++i) value *= 10;
  text.remove_prefix(count);
  return microseconds(value);
}

// "Z" or "+01:00".
std::optional<std::chrono::minutes> TakeOffset(std::string_view& text) {
  if (text == "Z" || text == "z") {
    text = {};
    return std::chrono::minutes(0);
  }
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = TakeDigits(text, 2, ':');
  const auto minutes = hours ? TakeDigits(text, 2, 0) : std::nullopt;
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return std::chrono::minutes(sign * (*hours * 60 + *minutes));
}

}  // namespace

std::string FormatTimestamp(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  return StrCat(Digits(static_cast<int>(date.year()), 4), "-",
                Digits(static_cast<unsigned>(date.month()), 2), "-",
                Digits(static_cast<unsigned>(date.day()), 2), "T", Digits(clock.hours().count(), 2),
                ":", Digits(clock.minutes().count(), 2), ":", Digits(clock.seconds().count(), 2),
                ".", Digits(clock.subseconds().count(), 3), "Z");
}

std::optional<WallTime> ParseTimestamp(std::string_view text) {
  const auto year = TakeDigits(text, 4, '-');
  const auto month = year ? TakeDigits(text, 2, '-') : std::nullopt;
  const auto day = month ? TakeDigits(text, 2, 'T') : std::nullopt;
  const auto hour = day ? TakeDigits(text, 2, ':') : std::nullopt;
  const auto minute = hour ? TakeDigits(text, 2, ':') : std::nullopt;
  const auto second = minute ? TakeDigits(text, 2, 0) : std::nullopt;
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto fraction = TakeFraction(text);
  const auto offset = fraction ? TakeOffset(text) : std::nullopt;
  if (!offset || !text.empty()) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) + *fraction - *offset;
}

}  // namespace soma::parse
