// SPDX-License-Identifier: Apache-2.0
#include "guest/paths.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::guest {

std::string CleanPath(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  std::string out;
  for (const std::string_view part : parts) out += StrCat("/", part);
  return out.empty() ? "/" : out;
}

Result<std::string> ResolvePath(std::string_view path, std::string_view base,
                                std::string_view home) {
  if (path.find('\0') != std::string_view::npos) {
    return Fail(Errc::kInvalidArgument, "a path with a NUL byte");
  }
  if (path.starts_with('/')) return CleanPath(path);
  if (path == "~" || path.starts_with("~/")) return CleanPath(StrCat(home, "/", path.substr(1)));
  return CleanPath(StrCat(base.empty() ? home : base, "/", path));
}

std::string ParentOf(std::string_view clean_path) {
  const auto slash = clean_path.rfind('/');
  return slash == 0 ? "/" : std::string(clean_path.substr(0, slash));
}

std::string NameOf(std::string_view clean_path) {
  if (clean_path == "/") return "/";
  return std::string(clean_path.substr(clean_path.rfind('/') + 1));
}

}  // namespace soma::guest
