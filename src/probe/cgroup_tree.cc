// SPDX-License-Identifier: Apache-2.0
#include "probe/cgroup_tree.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace soma::probe {
namespace {

bool Lists(std::string_view comma_separated, std::string_view word) {
  return std::ranges::any_of(Split(comma_separated, ','),
                             [word](std::string_view part) { return part == word; });
}

// proc_pid_mountinfo(5): id parent major:minor root mount-point options [optional…] - type source
// super-options
struct MountLine {
  std::string_view root;
  std::string_view point;
  std::string_view type;
  std::string_view options;
};
std::optional<MountLine> ParseMount(std::string_view line) {
  const std::vector<std::string_view> words = Split(line, ' ');
  const auto dash = std::ranges::find(words, std::string_view("-"));
  if (words.size() < 10 || words.end() - dash < 4) return std::nullopt;
  return MountLine{.root = words[3], .point = words[4], .type = dash[1], .options = dash[3]};
}

// cgroups(7), /proc/[pid]/cgroup: "5:memory:/path" for v1, "0::/path" for v2.
std::optional<std::string_view> PathOf(std::string_view cgroup, std::string_view controller,
                                       bool v2) {
  for (const std::string_view line : Split(cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const bool fits = v2 ? line.starts_with("0::") : Lists(names, controller);
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<CgroupPlace> FindCgroup(std::string_view mountinfo, std::string_view cgroup,
                                      std::string_view controller) {
  for (const bool v2 : {false, true}) {
    if (!v2 && controller.empty()) continue;
    const auto path = PathOf(cgroup, controller, v2);
    if (!path) continue;
    for (const std::string_view line : Split(mountinfo, '\n')) {
      const auto mount = ParseMount(line);
      if (!mount) continue;
      const bool fits = v2 ? mount->type == "cgroup2"
                           : mount->type == "cgroup" && Lists(mount->options, controller);
      if (!fits) continue;
      // A mount may show a part of the hierarchy (its root): the path is relative to that.
      std::string_view below = *path;
      if (mount->root != "/" && below.starts_with(mount->root))
        below.remove_prefix(mount->root.size());
      std::string directory = StrCat(mount->point, below);
      while (directory.ends_with('/')) directory.pop_back();
      return CgroupPlace{.directory = std::move(directory), .v2 = v2};
    }
  }
  return std::nullopt;
}

}  // namespace soma::probe
