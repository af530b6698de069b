// SPDX-License-Identifier: Apache-2.0
// JSON through `parse`, with the line of every value: the document is walked a second time by text,
// which is simple because it is known to be valid then.
#include <algorithm>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"
#include "policy/document.h"
#include "policy/load.h"

namespace soma::policy {

namespace {

using parse::Json;

// Lines of all values in the order of the text; names of members don't count.
std::vector<int> LinesOfValues(std::string_view text) {
  std::vector<int> lines;
  int line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
      }
      const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
      if (next == std::string_view::npos || text[next] != ':') lines.push_back(line);
    } else if (c == '{' || c == '[') {
      lines.push_back(line);
    } else if (!std::string_view(" \t\r\n,:]}").contains(c)) {
      lines.push_back(line);
      while (i + 1 < text.size() && !std::string_view(" \t\r\n,]}").contains(text[i + 1])) ++i;
    }
  }
  return lines;
}

class Converter {
 public:
  explicit Converter(std::vector<int> lines) : lines_(std::move(lines)) {}

  Node Convert(const Json& from) {
    Node out{.kind = Node::Kind::kOther, .line = NextLine()};
    if (const auto* object = from.AsObject()) {
      out.kind = Node::Kind::kTable;
      for (const parse::JsonMember& member : *object) {
        out.members.push_back(Convert(member.value));
        out.members.back().key = member.name;
      }
    } else if (const auto* array = from.AsArray()) {
      out.kind = Node::Kind::kArray;
      for (const Json& item : *array) out.items.push_back(Convert(item));
    } else if (const auto* text = from.AsString()) {
      out.kind = Node::Kind::kString;
      out.text = *text;
    } else if (const auto integer = from.AsInt()) {
      out.kind = Node::Kind::kInteger;
      out.integer = *integer;
    } else if (const auto real = from.AsDouble()) {
      out.kind = Node::Kind::kFloat;
      out.real = *real;
    } else if (const auto boolean = from.AsBool()) {
      out.kind = Node::Kind::kBool;
      out.integer = *boolean ? 1 : 0;
    }
    return out;
  }

 private:
  int NextLine() { return next_ < lines_.size() ? lines_[next_++] : 0; }

  std::vector<int> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Result<Node> ParseJsonDocument(std::string_view text, std::string_view name) {
  std::size_t failed_at = 0;
  const parse::JsonLimits limits{.bytes_max = kPolicyFileBytesMax,
                                 .depth_max = kDocumentDepthMax,
                                 .values_max = 4 * kRulesMax,
                                 .members_max = kRulesMax};
  const auto parsed = parse::ParseJson(text, limits, &failed_at);
  if (!parsed) {
    const std::string_view read = text.substr(0, failed_at);
    return std::unexpected(ErrorAt(name, 1 + static_cast<int>(std::ranges::count(read, '\n')),
                                   EscapeForTerminal(parsed.error().message())));
  }
  if (!parsed->is_object()) return std::unexpected(ErrorAt(name, 1, "must be an object"));
  return Converter(LinesOfValues(text)).Convert(*parsed);
}

}  // namespace soma::policy
