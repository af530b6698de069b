// SPDX-License-Identifier: Apache-2.0
#include "policy/builtin.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policy/document.h"
#include "policy/load.h"

namespace soma::policy {

namespace {

// One Node without its children, which follow it: `children` of them, each with its own behind it.
struct FlatNode {
  Node::Kind kind;
  int line;
  std::int64_t integer;
  std::size_t children;
  std::string_view key;
  std::string_view text;
};

#include "policy/builtin_profiles.inc"

// Takes the node at the front of `flat`, with everything that belongs to it.
Node Unflatten(std::span<const FlatNode>& flat) {
  const FlatNode& from = flat.front();
  flat = flat.subspan(1);
  Node node{.kind = from.kind, .line = from.line, .integer = from.integer};
  node.key = from.key;
  node.text = from.text;
  auto& children = from.kind == Node::Kind::kTable ? node.members : node.items;
  children.reserve(from.children);
  for (std::size_t i = 0; i < from.children; ++i) children.push_back(Unflatten(flat));
  return node;
}

std::optional<std::size_t> IndexOf(std::string_view name) {
  for (std::size_t i = 0; i < kBuiltinNames.size(); ++i) {
    if (kBuiltinNames[i] == name) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Node> BuiltinDocument(std::string_view name) {
  const auto index = IndexOf(name);
  if (!index) return std::nullopt;
  std::span<const FlatNode> flat = kBuiltinDocuments[*index];
  return Unflatten(flat);
}

std::span<const std::string_view> BuiltinProfiles() { return kBuiltinNames; }

std::optional<std::string_view> BuiltinProfileText(std::string_view name) {
  const auto index = IndexOf(name);
  if (!index) return std::nullopt;
  return kBuiltinTexts[*index];
}

}  // namespace soma::policy
