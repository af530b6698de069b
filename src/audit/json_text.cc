// SPDX-License-Identifier: Apache-2.0
#include "audit/json_text.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace soma::audit {

namespace {

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t size = 0;  // 0: not valid UTF-8 here
};

// The first code point of `text` (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
CodePoint FirstCodePoint(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  std::uint32_t value = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = (value << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[size] || value > 0x10ffff) return {};
  if (value >= 0xd800 && value <= 0xdfff) return {};
  return {value, size};
}

// What must not reach a terminal raw. U+2028/9 are line ends to some readers of JSON lines.
bool NeedsEscape(std::uint32_t value) {
  return value < 0x20 || (value >= 0x7f && value <= 0x9f) || (value >= 0x2028 && value <= 0x202e) ||
         (value >= 0x2066 && value <= 0x2069);
}

void AppendUnicodeEscape(std::string& out, std::uint32_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 0xf];
}

void AppendUtf8(std::string& out, std::uint32_t value) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (value < 0x80) {
    add(value);
  } else if (value < 0x800) {
    add(0xc0 | (value >> 6));
    add(0x80 | (value & 0x3f));
  } else {
    add(0xe0 | (value >> 12));
    add(0x80 | ((value >> 6) & 0x3f));
    add(0x80 | (value & 0x3f));
  }
}

std::optional<std::uint32_t> FourHexDigits(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<std::uint32_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view bytes) {
  out += '"';
  while (!bytes.empty()) {
    const CodePoint point = FirstCodePoint(bytes);
    if (point.size == 0) {
      AppendUnicodeEscape(out, 0xdc00U + static_cast<std::uint8_t>(bytes[0]));
      bytes.remove_prefix(1);
      continue;
    }
    if (NeedsEscape(point.value)) {
      AppendUnicodeEscape(out, point.value);
    } else {
      if (point.value == '"' || point.value == '\\') out += '\\';
      out += bytes.substr(0, point.size);
    }
    bytes.remove_prefix(point.size);
  }
  out += '"';
}

bool TextReader::Take(std::string_view literal) {
  if (!ok_ || !in_.starts_with(literal)) return false;
  in_.remove_prefix(literal.size());
  return true;
}

void TextReader::Expect(std::string_view literal) {
  if (!Take(literal)) ok_ = false;
}

std::string TextReader::String(std::size_t bytes_max) {
  const std::string_view before = in_;
  Expect("\"");
  std::string out;
  while (ok_ && !Take("\"")) {
    if (in_.empty() || out.size() > bytes_max) {
      ok_ = false;
    } else if (Take("\\u")) {
      const auto value = FourHexDigits(in_);
      if (!value) {
        ok_ = false;
        break;
      }
      in_.remove_prefix(4);
      if (*value >= 0xdc00 && *value <= 0xdcff) {
        out += static_cast<char>(*value & 0xff);
      } else {
        AppendUtf8(out, *value);
      }
    } else {
      (void)Take("\\");
      if (in_.empty()) continue;
      out += in_.front();
      in_.remove_prefix(1);
    }
  }
  // Only the one canonical spelling counts: whatever decoded must encode to the same bytes.
  std::string again;
  if (ok_) AppendJsonString(again, out);
  if (out.size() > bytes_max || again != before.substr(0, before.size() - in_.size())) ok_ = false;
  return ok_ ? out : std::string();
}

std::uint64_t TextReader::Number() {
  const std::size_t size = in_.find_first_not_of("0123456789");
  const std::string_view digits = in_.substr(0, size);
  const auto value = ParseInt<std::uint64_t>(digits);
  if (!ok_ || !value || (digits.size() > 1 && digits.front() == '0')) {
    ok_ = false;
    return 0;
  }
  in_.remove_prefix(digits.size());
  return *value;
}

std::string_view TextReader::Raw(std::size_t size) {
  if (!ok_ || in_.size() < size) {
    ok_ = false;
    return {};
  }
  const std::string_view raw = in_.substr(0, size);
  in_.remove_prefix(size);
  return raw;
}

}  // namespace soma::audit
