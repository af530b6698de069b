// SPDX-License-Identifier: Apache-2.0
// Document: a parsed policy file, the same for TOML and JSON, with the line of every value.
// Internal to the room.
//
// The two foreign parsers are wrapped here once: errors come back as "line N: …", nothing throws,
// and depth and size are bounded before anything is built.
#ifndef SOMA_POLICY_DOCUMENT_H_
#define SOMA_POLICY_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace soma::policy {

inline constexpr std::size_t kDocumentDepthMax = 16;

struct Node {
  enum class Kind : std::uint8_t { kTable, kArray, kString, kInteger, kFloat, kBool, kOther };
  Kind kind = Kind::kTable;
  int line = 0;
  std::string text;           // kString
  std::int64_t integer = 0;   // kInteger, kBool (0 or 1)
  double real = 0;            // kFloat
  std::vector<Node> items;    // kArray
  std::vector<Node> members;  // kTable, in the order of the text, keys unique
  std::string key;            // of a member of a table
};

// "a table", "a string", …: for messages.
std::string_view KindName(Node::Kind kind);

// `name` goes into messages: "NAME:LINE: what is wrong". The text must be UTF-8.
Result<Node> ParseTomlDocument(std::string_view text, std::string_view name);
Result<Node> ParseJsonDocument(std::string_view text, std::string_view name);

// kInvalidArgument with "name:line: message".
Error ErrorAt(std::string_view name, int line, std::string_view message);

}  // namespace soma::policy

#endif  // SOMA_POLICY_DOCUMENT_H_
