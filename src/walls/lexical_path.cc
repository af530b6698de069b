// SPDX-License-Identifier: Apache-2.0
#include "walls/lexical_path.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace soma::walls {

std::string JoinLexically(std::string_view base, std::string_view path) {
  std::string out;
  const auto walk = [&out](std::string_view text) {
    for (const std::string_view part : Split(text, '/')) {
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        out.resize(out.empty() ? 0 : out.rfind('/'));
      } else {
        out += '/';
        out += part;
      }
    }
  };
  if (!path.starts_with('/')) walk(base);
  walk(path);
  return out.empty() ? "/" : out;
}

ParentAndName SplitPath(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {.parent = "", .name = std::string(path)};
  return {.parent = std::string(path.substr(0, slash == 0 ? 1 : slash)),
          .name = std::string(path.substr(slash + 1))};
}

}  // namespace soma::walls
