// SPDX-License-Identifier: Apache-2.0
#include "policy/document.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace soma::policy {

std::string_view KindName(Node::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"a table",
                                                      "a list",
                                                      "a string",
                                                      "an integer",
                                                      "a decimal number",
                                                      "true or false",
                                                      "a value of a type that no key takes"};
  return kNames[static_cast<std::size_t>(kind)];
}

Error ErrorAt(std::string_view name, int line, std::string_view message) {
  if (line == 0) return {Errc::kInvalidArgument, StrCat(name, ": ", message)};
  return {Errc::kInvalidArgument, StrCat(name, ":", line, ": ", message)};
}

}  // namespace soma::policy
