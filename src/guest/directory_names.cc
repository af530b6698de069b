// SPDX-License-Identifier: Apache-2.0
#include "guest/directory_names.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::guest {

namespace {

struct CloseDirectory {
  void operator()(DIR* open) const { ::closedir(open); }
};

}  // namespace

Result<std::vector<std::string>> SortedNames(const std::string& path) {
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
  if (!directory) return std::unexpected(Error::FromErrno(errno, StrCat("listing ", path)));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kDirectoryNamesMax) {
      return Fail(Errc::kResourceExhausted, StrCat("too many entries in ", path));
    }
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace soma::guest
