// SPDX-License-Identifier: Apache-2.0
// Section: reads the members of one table of a policy document, each exactly once; what nobody
// asked for is an unknown key. Internal to the room.
//
// The first error is kept and everything after it reads as absent, so that a reader is a plain list
// of keys and checks once, with Finish().
#ifndef SOMA_POLICY_SECTION_H_
#define SOMA_POLICY_SECTION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "policy/document.h"
#include "policy/model.h"

namespace soma::policy {

class Section {
 public:
  // `title` is "[network]", or "the file" for the top level. All three outlive the object. A null
  // `table` is an absent section: everything in it is absent.
  Section(const Node* table, std::string_view title, std::string_view file);

  const Node* Take(std::string_view key, Node::Kind kind);
  std::optional<Sourced<std::string>> String(std::string_view key);
  std::optional<Sourced<bool>> Bool(std::string_view key);
  // A number, an integer, or a string: whatever the key's own parser makes of its text.
  std::optional<Sourced<std::string>> Scalar(std::string_view key);
  // A list of strings; `use` gets each with its origin and may fail.
  void Strings(std::string_view key,
               const std::function<Status(const std::string&, const Origin&)>& use);

  // A string or scalar through `parse`, which gives an optional; `expected` completes "must be …".
  template <typename Parse>
  auto Parsed(std::string_view key, std::string_view expected, Parse parse)
      -> std::optional<Sourced<typename decltype(parse(std::string_view()))::value_type>> {
    const auto text = Scalar(key);
    if (!text) return std::nullopt;
    auto value = parse(std::string_view(text->value));
    if (!value) {
      FailAt(text->origin.line,
             StrCat(key, " must be ", expected, ", not \"", EscapeForTerminal(text->value), "\""));
      return std::nullopt;
    }
    return Sourced<typename decltype(parse(std::string_view()))::value_type>{*std::move(value),
                                                                             text->origin};
  }

  void FailAt(int line, std::string_view message);
  // The first error, else an unknown key, else nothing.
  Status Finish();

 private:
  const Node* Find(std::string_view key);
  Origin At(int line) const { return {std::string(file_), line}; }

  const Node* table_;
  std::string_view title_;
  std::string_view file_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

}  // namespace soma::policy

#endif  // SOMA_POLICY_SECTION_H_
