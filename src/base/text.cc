// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soma {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

struct DecodedRune {
  std::size_t length = 0;  // bytes; 0 when invalid
  char32_t rune = 0;
};

// Decodes the first code point strictly (RFC 3629: no overlong forms, no surrogates, at most
// U+10FFFF).
DecodedRune DecodeUtf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  std::size_t length = 0;
  char32_t rune = 0;
  char32_t minimum = 0;
  if ((first & 0xE0) == 0xC0) {
    length = 2, rune = first & 0x1F, minimum = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    length = 3, rune = first & 0x0F, minimum = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    length = 4, rune = first & 0x07, minimum = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    rune = (rune << 6) | (byte(i) & 0x3F);
  }
  const bool surrogate = rune >= 0xD800 && rune <= 0xDFFF;
  if (rune < minimum || rune > 0x10FFFF || surrogate) return {};
  return {length, rune};
}

bool IsUnsafeRune(char32_t rune) {
  const bool control = rune < 0x20 || (rune >= 0x7F && rune < 0xA0);
  const bool bidirectional =
      (rune >= 0x202A && rune <= 0x202E) || (rune >= 0x2066 && rune <= 0x2069);
  const bool separator = rune == 0x2028 || rune == 0x2029;
  return control || bidirectional || separator;
}

std::optional<std::uint8_t> HexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view Trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string Hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

std::optional<std::vector<std::uint8_t>> ParseHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::uint8_t> out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = HexValue(text[i]);
    const auto low = HexValue(text[i + 1]);
    if (!high || !low) return std::nullopt;
    out.push_back(static_cast<std::uint8_t>((*high << 4) | *low));
  }
  return out;
}

std::string EscapeForTerminal(std::string_view foreign) {
  std::string out;
  out.reserve(foreign.size());
  while (!foreign.empty()) {
    const DecodedRune decoded = DecodeUtf8(foreign);
    const std::size_t length = decoded.length == 0 ? 1 : decoded.length;
    if (foreign.front() == '\\') {
      out += "\\\\";
    } else if (decoded.length == 0 || IsUnsafeRune(decoded.rune)) {
      for (const char c : foreign.substr(0, length)) {
        const auto byte = static_cast<unsigned char>(c);
        out += "\\x";
        out += kHexDigits[byte >> 4];
        out += kHexDigits[byte & 15];
      }
    } else {
      out += foreign.substr(0, length);
    }
    foreign.remove_prefix(length);
  }
  return out;
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = DecodeUtf8(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace soma
