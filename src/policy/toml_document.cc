// SPDX-License-Identifier: Apache-2.0
// The one place that includes toml++. Compiled without its exceptions, formatters and stream
// operators: `soma` is a small static program.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_UNRELEASED_FEATURES 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "policy/document.h"

namespace soma::policy {

namespace {

int LineOf(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

Node Convert(const toml::node& from);

Node ConvertTable(const toml::table& table) {
  Node out{.kind = Node::Kind::kTable, .line = LineOf(table)};
  for (const auto& [key, value] : table) {
    Node member = Convert(value);
    member.line = static_cast<int>(key.source().begin.line);
    member.key = key.str();
    out.members.push_back(std::move(member));
  }
  // toml++ sorts by key; people read errors in the order of the text.
  std::ranges::stable_sort(out.members, {}, &Node::line);
  return out;
}

Node Convert(const toml::node& from) {
  if (const auto* table = from.as_table()) return ConvertTable(*table);
  Node out{.kind = Node::Kind::kOther, .line = LineOf(from)};
  if (const auto* array = from.as_array()) {
    out.kind = Node::Kind::kArray;
    for (const toml::node& item : *array) out.items.push_back(Convert(item));
  } else if (const auto* text = from.as_string()) {
    out.kind = Node::Kind::kString;
    out.text = text->get();
  } else if (const auto* integer = from.as_integer()) {
    out.kind = Node::Kind::kInteger;
    out.integer = integer->get();
  } else if (const auto* real = from.as_floating_point()) {
    out.kind = Node::Kind::kFloat;
    out.real = real->get();
  } else if (const auto* boolean = from.as_boolean()) {
    out.kind = Node::Kind::kBool;
    out.integer = boolean->get() ? 1 : 0;
  }
  return out;
}

// toml++ bounds the nesting of values but not the length of a dotted key, and frees its tables by
// recursion: 100,000 dots in one key would overflow the stack. So dots are counted before it
// starts. Follows strings and comments exactly as long as the text is valid; at the first byte that
// isn't, toml++ stops as well.
class DottedKeyGuard {
 public:
  explicit DottedKeyGuard(std::string_view text) : text_(text) {}

  // The line of the first key with too many dots; 0 when there is none.
  int FindTooDeep() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        SkipString(c);
        continue;
      }
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ == text_.size()) break;
      if (text_[at_] == '\n') ++line_;
      if (std::string_view("\n=,[]{}").contains(text_[at_])) dots_ = 0;
      if (text_[at_] == '.' && ++dots_ > kDocumentDepthMax) return line_;
      ++at_;
    }
    return 0;
  }

 private:
  void SkipString(char quote) {
    const std::string triple(3, quote);
    const bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\' && quote == '"') {
        // The escaped byte may be a line's end.
        ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') ++line_;
        ++at_;
        continue;
      }
      if (text_[at_] == '\n') {
        ++line_;
        if (!is_long) return;
      }
      if (is_long ? text_.substr(at_).starts_with(triple) : text_[at_] == quote) {
        at_ += is_long ? 3 : 1;
        // A long string may end in up to two quotes of its own.
        for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;
        return;
      }
      ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t dots_ = 0;
  int line_ = 1;
};

}  // namespace

Result<Node> ParseTomlDocument(std::string_view text, std::string_view name) {
  if (!IsValidUtf8(text)) return std::unexpected(ErrorAt(name, 0, "is not valid UTF-8"));
  if (const int line = DottedKeyGuard(text).FindTooDeep(); line != 0) {
    return std::unexpected(ErrorAt(name, line, "is nested too deeply"));
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return std::unexpected(ErrorAt(name, static_cast<int>(error.source().begin.line),
                                   EscapeForTerminal(error.description())));
  }
  return ConvertTable(parsed.table());
}

}  // namespace soma::policy
