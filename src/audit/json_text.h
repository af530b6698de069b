// SPDX-License-Identifier: Apache-2.0
// The one spelling of a byte string as a JSON string, and the strict reader of that spelling.
//
// Lossless for any bytes: valid UTF-8 stays as it is but for what a terminal could act on (control
// characters, DEL, C1, bidirectional overrides and isolates: \uNNNN), a quote and a backslash
// (\" and \\); every other byte becomes \udcNN, as Python's surrogateescape spells it. One spelling
// only, so equal strings have equal bytes and a changed byte can't decode to the same text.
#ifndef SOMA_AUDIT_JSON_TEXT_H_
#define SOMA_AUDIT_JSON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace soma::audit {

// Appends `"…"`.
void AppendJsonString(std::string& out, std::string_view bytes);

// Reads canonical text from the front of a view: literals exactly, strings as AppendJsonString
// spells them. After the first failure ok() is false and every read gives nothing.
class TextReader {
 public:
  explicit TextReader(std::string_view in) : in_(in) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && in_.empty(); }
  std::string_view rest() const { return in_; }

  // Consumes `literal` if it comes next; otherwise consumes nothing and is false.
  bool Take(std::string_view literal);
  // Take, or fail.
  void Expect(std::string_view literal);
  // A string of at most `bytes_max` bytes after decoding; else fails.
  std::string String(std::size_t bytes_max);
  // A decimal number without leading zeros; else fails.
  std::uint64_t Number();
  // `size` characters as they are; else fails.
  std::string_view Raw(std::size_t size);
  void MarkInvalid() { ok_ = false; }

 private:
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace soma::audit

#endif  // SOMA_AUDIT_JSON_TEXT_H_
