// SPDX-License-Identifier: Apache-2.0
#include "policy/units.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace soma::policy {

namespace {

constexpr std::size_t kUnitTextMax = 32;
constexpr std::uint64_t kByteCountMax = std::uint64_t{1} << 62;
constexpr std::uint64_t kMillisecondsMax = std::uint64_t{365} * 24 * 3600 * 1000;

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Longest first, so that "ms" is not read as "m".
constexpr std::array<Unit, 5> kTimeUnits = {
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};

// Takes leading digits off `text`; nullopt when there is none or the number is too large.
std::optional<std::uint64_t> TakeNumber(std::string_view& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseInt<std::uint64_t>(text.substr(0, digits));
  text.remove_prefix(digits);
  return number;
}

std::optional<std::uint64_t> SizeFactor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  constexpr std::string_view kLetters = "KMGT";
  const char letter = static_cast<char>(suffix[0] & ~0x20);
  const std::size_t power = kLetters.find(letter);
  const std::string_view rest = suffix.substr(1);
  if (power == std::string_view::npos) return std::nullopt;
  if (!rest.empty() && rest != "B" && rest != "iB" && rest != "b" && rest != "ib") {
    return std::nullopt;
  }
  return std::uint64_t{1} << (10 * (power + 1));
}

}  // namespace

std::optional<std::uint64_t> ParseByteCount(std::string_view text) {
  if (text.size() > kUnitTextMax) return std::nullopt;
  const auto number = TakeNumber(text);
  const auto factor = SizeFactor(text);
  if (!number || !factor || *number == 0 || *number > kByteCountMax / *factor) return std::nullopt;
  return *number * *factor;
}

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  if (text.empty() || text.size() > kUnitTextMax) return std::nullopt;
  std::uint64_t total = 0;
  while (!text.empty()) {
    const auto number = TakeNumber(text);
    if (!number) return std::nullopt;
    std::uint64_t factor = 0;
    if (text.empty() && total == 0) factor = 1000;
    for (const Unit& unit : kTimeUnits) {
      if (factor == 0 && text.starts_with(unit.name)) {
        factor = unit.factor;
        text.remove_prefix(unit.name.size());
      }
    }
    if (factor == 0 || *number > kMillisecondsMax / factor) return std::nullopt;
    total += *number * factor;
    if (total > kMillisecondsMax) return std::nullopt;
  }
  if (total == 0) return std::nullopt;
  return std::chrono::milliseconds(total);
}

std::string FormatByteCount(std::uint64_t bytes) {
  constexpr std::string_view kSuffixes = "TGMK";
  for (std::size_t i = 0; i < kSuffixes.size(); ++i) {
    const std::uint64_t factor = std::uint64_t{1} << (10 * (kSuffixes.size() - i));
    if (bytes >= factor && bytes % factor == 0) return StrCat(bytes / factor, kSuffixes[i]);
  }
  return StrCat(bytes);
}

std::string FormatDuration(std::chrono::milliseconds duration) {
  auto rest = static_cast<std::uint64_t>(duration.count());
  if (rest == 0) return "0s";
  std::string out;
  for (std::size_t i = kTimeUnits.size(); i-- > 0;) {
    const Unit& unit = kTimeUnits[i];
    if (rest >= unit.factor) out += StrCat(rest / unit.factor, unit.name);
    rest %= unit.factor;
  }
  return out;
}

}  // namespace soma::policy
