// SPDX-License-Identifier: Apache-2.0
// Finding the cgroup hierarchies: pure parsing of two files of proc(5).
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "launcher/cgroup_tree.h"

namespace soma::launcher {
namespace {

bool Lists(std::string_view comma_separated, std::string_view word) {
  const auto words = Split(comma_separated, ',');
  return std::ranges::find(words, word) != words.end();
}

// The own cgroup in a hierarchy, from "ID:controllers:path" lines; v2 has no controllers there.
std::optional<std::string> OwnPath(std::string_view own_cgroups, CgroupVersion version,
                                   std::string_view super_options) {
  for (const std::string_view line : Split(own_cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool match = version == CgroupVersion::kV2
                           ? controllers.empty()
                           : !controllers.empty() &&
                                 Lists(super_options, controllers.substr(0, controllers.find(',')));
    if (match) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// mountinfo writes blanks and backslashes of paths as octal; cgroup mounts with such names are not
// looked for.
std::optional<Hierarchy> ParseLine(std::string_view line, std::string_view own_cgroups) {
  const auto fields = Split(line, ' ');
  const auto dash = std::ranges::find(fields, std::string_view("-"));
  constexpr std::ptrdiff_t kAfterDash = 4;  // "-", type, source, super options
  if (fields.size() < 6 || fields.end() - dash < kAfterDash) return std::nullopt;
  const std::string_view type = *(dash + 1);
  const std::string_view super_options = *(dash + 3);
  const std::string_view root = fields[3];
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  Hierarchy found;
  found.version = type == "cgroup2" ? CgroupVersion::kV2 : CgroupVersion::kV1;
  if (found.version == CgroupVersion::kV1) {
    found.memory = Lists(super_options, "memory");
    found.pids = Lists(super_options, "pids");
    found.cpu = Lists(super_options, "cpu");
    if (!found.memory && !found.pids && !found.cpu) return std::nullopt;
  }
  auto path = OwnPath(own_cgroups, found.version, super_options);
  if (!path) return std::nullopt;
  // A mount that shows only a part of the hierarchy starts at `root`.
  std::string_view relative = *path;
  if (root != "/" && relative.starts_with(root)) relative.remove_prefix(root.size());
  found.directory = std::string(fields[4]);
  // The leaf into which a launcher moves itself on version 2 is inside its cgroup, not the cgroup.
  if (found.version == CgroupVersion::kV2 && relative.ends_with(kLauncherLeaf)) {
    relative.remove_suffix(kLauncherLeaf.size());
  }
  if (relative != "/") found.directory += relative;
  return found;
}

}  // namespace

std::vector<Hierarchy> FindHierarchies(std::string_view mountinfo, std::string_view own_cgroups) {
  std::vector<Hierarchy> all;
  for (const std::string_view line : Split(mountinfo, '\n')) {
    auto found = ParseLine(line, own_cgroups);
    // The same hierarchy may be mounted twice.
    if (found && std::ranges::none_of(all, [&](const Hierarchy& other) {
          return other.version == found->version && other.memory == found->memory &&
                 other.pids == found->pids && other.cpu == found->cpu;
        })) {
      all.push_back(*std::move(found));
    }
  }
  return all;
}

}  // namespace soma::launcher
