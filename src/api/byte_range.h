// SPDX-License-Identifier: Apache-2.0
// The Range header (RFC 9110 section 14.2), as far as downloads honour it: one range that names
// its first byte. Everything else is ignored, as the RFC allows. Pure, untrusted input.
#ifndef SOMA_API_BYTE_RANGE_H_
#define SOMA_API_BYTE_RANGE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace soma::api {

struct ByteRange {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> last;  // inclusive; nullopt = to the end
};

inline std::optional<ByteRange> ParseByteRange(std::string_view header) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = ParseInt<std::uint64_t>(header.substr(0, dash));
  const std::string_view rest = header.substr(dash + 1);
  const auto last = ParseInt<std::uint64_t>(rest);
  if (!first || (!rest.empty() && !last) || (last && *last < *first)) return std::nullopt;
  return ByteRange{.first = *first, .last = last};
}

}  // namespace soma::api

#endif  // SOMA_API_BYTE_RANGE_H_
