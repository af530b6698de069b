// SPDX-License-Identifier: Apache-2.0
#include "policy/section.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "policy/document.h"
#include "policy/model.h"

namespace soma::policy {

Section::Section(const Node* table, std::string_view title, std::string_view file)
    : table_(table), title_(title), file_(file) {}

const Node* Section::Find(std::string_view key) {
  known_.push_back(key);
  if (table_ == nullptr || error_) return nullptr;
  for (const Node& member : table_->members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

const Node* Section::Take(std::string_view key, Node::Kind kind) {
  const Node* found = Find(key);
  if (found == nullptr) return nullptr;
  if (found->kind != kind) {
    FailAt(found->line, StrCat(key, " must be ", KindName(kind), ", not ", KindName(found->kind)));
    return nullptr;
  }
  return found;
}

std::optional<Sourced<std::string>> Section::String(std::string_view key) {
  const Node* found = Take(key, Node::Kind::kString);
  if (found == nullptr) return std::nullopt;
  return Sourced<std::string>{found->text, At(found->line)};
}

std::optional<Sourced<bool>> Section::Bool(std::string_view key) {
  const Node* found = Take(key, Node::Kind::kBool);
  if (found == nullptr) return std::nullopt;
  return Sourced<bool>{found->integer != 0, At(found->line)};
}

std::optional<Sourced<std::string>> Section::Scalar(std::string_view key) {
  const Node* found = Find(key);
  if (found == nullptr) return std::nullopt;
  Sourced<std::string> out{.value = {}, .origin = At(found->line)};
  switch (found->kind) {
    case Node::Kind::kString:
      out.value = found->text;
      return out;
    case Node::Kind::kInteger:
      out.value = StrCat(found->integer);
      return out;
    case Node::Kind::kFloat: {
      std::array<char, 64> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), found->real).ptr;
      out.value.assign(digits.data(), end);
      return out;
    }
    default:
      FailAt(found->line,
             StrCat(key, " must be a string or a number, not ", KindName(found->kind)));
      return std::nullopt;
  }
}

void Section::Strings(std::string_view key,
                      const std::function<Status(const std::string&, const Origin&)>& use) {
  const Node* found = Take(key, Node::Kind::kArray);
  if (found == nullptr) return;
  for (const Node& item : found->items) {
    if (item.kind != Node::Kind::kString) {
      FailAt(item.line, StrCat(key, " must be a list of strings, and has ", KindName(item.kind)));
      return;
    }
    if (const Status status = use(item.text, At(item.line)); !status) {
      FailAt(item.line, StrCat(key, ": ", status.error().message()));
      return;
    }
  }
}

void Section::FailAt(int line, std::string_view message) {
  if (!error_) error_ = ErrorAt(file_, line, message);
}

Status Section::Finish() {
  if (error_) return std::unexpected(*std::move(error_));
  if (table_ == nullptr) return {};
  for (const Node& member : table_->members) {
    if (std::ranges::find(known_, member.key) != known_.end()) continue;
    std::string keys;
    for (const std::string_view key : known_) keys += StrCat(keys.empty() ? "" : ", ", key);
    return std::unexpected(ErrorAt(file_, member.line,
                                   StrCat("unknown key \"", EscapeForTerminal(member.key), "\" in ",
                                          title_, " (known: ", keys, ")")));
  }
  return {};
}

}  // namespace soma::policy
