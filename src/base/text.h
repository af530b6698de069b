// SPDX-License-Identifier: Apache-2.0
// Text without iostreams and without fmt: for the static programs, where every kilobyte and
// microsecond counts.
#ifndef SOMA_BASE_TEXT_H_
#define SOMA_BASE_TEXT_H_

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soma {

namespace text_internal {
inline void Append(std::string& out, std::string_view part) { out += part; }
inline void Append(std::string& out, char part) { out += part; }
template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>)
void Append(std::string& out, T part) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, part).ptr;
  out.append(digits, end);
}
}  // namespace text_internal

// Concatenates strings, characters and integers (decimal): StrCat("uid ", 1000, " is taken").
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string out;
  (text_internal::Append(out, parts), ...);
  return out;
}

// Parses a whole decimal number; nothing before or after it, no sign for unsigned types, no
// overflow.
template <std::integral T>
std::optional<T> ParseInt(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Splits at every `separator`; "a,,b" gives three parts, "" gives one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
// Removes blanks and tabs at both ends.
std::string_view Trim(std::string_view text);

// Lower-case hexadecimal of bytes.
std::string Hex(std::span<const std::uint8_t> bytes);
// Reads exactly 2 * N lower- or upper-case digits; nullopt for anything else.
std::optional<std::vector<std::uint8_t>> ParseHex(std::string_view text);

// Makes foreign bytes safe to print on a terminal or into a log line: control characters, DEL, and
// everything that is not valid UTF-8 become \xNN, a backslash becomes \\. Bidirectional overrides
// (U+202A–E, U+2066–9) are escaped too.
std::string EscapeForTerminal(std::string_view foreign);

bool IsValidUtf8(std::string_view text);

}  // namespace soma

#endif  // SOMA_BASE_TEXT_H_
