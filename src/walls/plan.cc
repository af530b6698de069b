// SPDX-License-Identifier: Apache-2.0
#include "walls/plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

// As many as fit as "/proc/self/fd/N" into the 255 bytes of one fsconfig(2) value.
constexpr std::size_t kOverlayLowersMax = 12;
constexpr std::uint32_t kIdInvalid = 0xFFFFFFFF;

Status Refuse(std::string message) { return Fail(Errc::kInvalidArgument, std::move(message)); }

bool IsNormalised(std::string_view path) {
  if (path == "/") return true;
  if (path.empty() || path.front() != '/' || path.size() > kPlanPathBytesMax) return false;
  if (path.find('\0') != std::string_view::npos) return false;
  const auto parts = Split(path.substr(1), '/');
  return std::ranges::none_of(
      parts, [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

Status CheckPath(std::string_view what, std::string_view path) {
  if (IsNormalised(path)) return {};
  return Refuse(StrCat(what, ": not an absolute, normalised path: ", EscapeForTerminal(path)));
}

Status CheckText(std::string_view what, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return Refuse(StrCat(what, ": holds a NUL byte"));
  if (text.size() > kPlanTextBytesMax) return Refuse(StrCat(what, ": too long"));
  return {};
}

template <typename List>
Status CheckCount(std::string_view what, const List& list, std::size_t count_max = kPlanItemsMax) {
  if (list.size() <= count_max) return {};
  return Fail(Errc::kOutOfRange, StrCat(what, ": ", list.size(), " items, at most ", count_max));
}

Status CheckRanges(std::string_view what, const std::vector<IdRange>& ranges) {
  SOMA_TRY(CheckCount(what, ranges, 340));  // UID_GID_MAP_MAX_EXTENTS, user_namespace.h
  for (const IdRange& range : ranges) {
    if (range.count == 0 || range.inside > kIdInvalid - range.count ||
        range.outside > kIdInvalid - range.count) {
      return Refuse(StrCat(what, ": an empty or overflowing range at ", range.inside));
    }
  }
  return {};
}

bool Maps(const std::vector<IdRange>& ranges, std::uint32_t id) {
  return std::ranges::any_of(ranges, [id](const IdRange& range) {
    return id >= range.inside && id - range.inside < range.count;
  });
}

Status CheckIdentity(const WallPlan& plan) {
  if (plan.user_namespaces.size() > 2) return Refuse("user namespaces: at most two");
  for (const UserNamespace& user : plan.user_namespaces) {
    SOMA_TRY(CheckRanges("uid map", user.uids));
    SOMA_TRY(CheckRanges("gid map", user.gids));
  }
  SOMA_TRY(CheckCount("groups", plan.groups));
  if (plan.uid == kIdInvalid || plan.gid == kIdInvalid) return Refuse("uid or gid: -1 is no id");
  if (plan.user_namespaces.empty()) return {};
  const UserNamespace& inner = plan.user_namespaces.back();
  if (!Maps(inner.uids, plan.uid)) return Refuse(StrCat("uid ", plan.uid, ": not mapped"));
  if (!Maps(inner.gids, plan.gid)) return Refuse(StrCat("gid ", plan.gid, ": not mapped"));
  return {};
}

Status CheckNamespaces(const WallPlan& plan) {
  if ((static_cast<unsigned>(plan.namespaces) & ~static_cast<unsigned>(Namespaces::kAll)) != 0) {
    return Refuse("namespaces: an unknown bit");
  }
  if (!plan.mounts.empty() && !Has(plan.namespaces, Namespaces::kMount)) {
    return Refuse("mounts: without a mount namespace they would be the host's");
  }
  if (!plan.host_name.empty() && !Has(plan.namespaces, Namespaces::kUts)) {
    return Refuse("host name: without a uts namespace it would be the host's");
  }
  if (plan.host_name.size() > 64) return Refuse("host name: longer than 64 bytes");  // uts.h
  SOMA_TRY(CheckText("host name", plan.host_name));
  const bool own_network = Has(plan.namespaces, Namespaces::kNetwork);
  if ((plan.network != NetworkKind::kHost) != own_network) {
    return Refuse("network: 'host' and a network namespace exclude each other");
  }
  if (plan.terminal == TerminalKind::kPty && !plan.init) {
    return Refuse("terminal: a pty needs an init");
  }
  return {};
}

Status CheckMount(const MountItem& item) {
  const std::string what = StrCat("mount ", EscapeForTerminal(item.target));
  SOMA_TRY(CheckPath(what, item.target));
  SOMA_TRY(CheckRanges(what, item.id_map.uids));
  SOMA_TRY(CheckRanges(what, item.id_map.gids));
  SOMA_TRY(CheckText(what, item.content));
  SOMA_TRY(CheckCount(what, item.lowers, kOverlayLowersMax));
  for (const std::string& lower : item.lowers) SOMA_TRY(CheckPath(what, lower));
  if (item.kind == MountKind::kBind && !item.slot)
    SOMA_TRY(CheckPath(StrCat(what, ": source"), item.source));
  if (item.kind == MountKind::kSymlink) {
    SOMA_TRY(CheckText(what, item.source));
    if (item.source.empty() || item.source.size() > kPlanPathBytesMax) {
      return Refuse(StrCat(what, ": a symlink needs a text"));
    }
  }
  if (item.kind == MountKind::kOverlay) {
    if (item.lowers.empty()) return Refuse(StrCat(what, ": an overlay needs a lower"));
    if (item.upper.empty() != item.work.empty()) {
      return Refuse(StrCat(what, ": upper and work go together"));
    }
    if (!item.upper.empty()) {
      SOMA_TRY(CheckPath(what, item.upper));
      SOMA_TRY(CheckPath(what, item.work));
    }
  }
  if (item.mode > 07777) return Refuse(StrCat(what, ": a mode beyond 07777"));
  return {};
}

bool CanBeRoot(MountKind kind) {
  return kind == MountKind::kBind || kind == MountKind::kTmpfs || kind == MountKind::kOverlay;
}

Status CheckMounts(const WallPlan& plan) {
  SOMA_TRY(CheckCount("mounts", plan.mounts));
  if (plan.mounts.empty()) return {};
  const MountItem& root = plan.mounts.front();
  if (root.target != "/" || !CanBeRoot(root.kind)) {
    return Refuse("mounts: the first must be the root '/'");
  }
  std::vector<std::string_view> targets;
  for (const MountItem& item : plan.mounts) {
    SOMA_TRY(CheckMount(item));
    // A mount on top of earlier ones would silently take them away.
    const std::string below = item.target == "/" ? "/" : item.target + "/";
    for (const std::string_view earlier : targets) {
      if (earlier.starts_with(below)) {
        return Refuse(StrCat("mounts: ", EscapeForTerminal(item.target), " comes after ",
                             EscapeForTerminal(earlier), ", which is below it"));
      }
    }
    targets.push_back(item.target);
  }
  std::ranges::sort(targets);
  // kHide on top of a bind is the one sensible doubling, and it can be written as leaving the bind
  // out.
  const auto twice = std::ranges::adjacent_find(targets);
  if (twice != targets.end()) {
    return Refuse(StrCat("mounts: twice at ", EscapeForTerminal(*twice)));
  }
  return {};
}

Status CheckPrivileges(const WallPlan& plan) {
  if (plan.keep_capabilities && plan.uid != 0) {
    return Refuse("capabilities: only uid 0 inside can start with them");
  }
  const bool suid = std::ranges::any_of(plan.mounts, &MountItem::allow_suid);
  if (suid && plan.no_new_privs) {
    return Refuse("no_new_privs: contradicts a mount that allows setuid programs");
  }
  SOMA_TRY(CheckCount("landlock rules", plan.landlock.rules));
  for (const LandlockRule& rule : plan.landlock.rules) {
    SOMA_TRY(CheckPath("landlock rule", rule.path));
  }
  if (plan.seccomp.notify != SeccompNotify::kNone && !plan.seccomp.enabled) {
    return Refuse("seccomp: a listener needs a program");
  }
  if (plan.seccomp.notify != SeccompNotify::kNone && !plan.init) {
    return Refuse("seccomp: a listener needs an init");
  }
  return {};
}

Status CheckLimits(const WallPlan& plan) {
  SOMA_TRY(CheckCount("limits", plan.limits));
  for (const ResourceLimit& limit : plan.limits) {
    if (limit.resource >= RLIM_NLIMITS) {
      return Refuse(StrCat("limit ", limit.resource, ": no such resource"));
    }
  }
  SOMA_TRY(CheckCount("cgroup slots", plan.cgroup.slots, 16));
  const std::string& name = plan.cgroup.name;
  if (plan.cgroup.mode == CgroupMode::kCreate &&
      (name.empty() || name.size() > 255 || name.front() == '.' ||
       name.find_first_of(std::string_view("/\0\n", 3)) != std::string::npos)) {
    return Refuse("cgroup: the name is not one path component");
  }
  return {};
}

Status CheckDescriptors(const WallPlan& plan) {
  SOMA_TRY(CheckCount("descriptors", plan.descriptors, 256));
  std::vector<std::uint32_t> numbers;
  for (const DescriptorPass& pass : plan.descriptors) {
    if (pass.inside > 1023) return Refuse(StrCat("descriptor ", pass.inside, ": beyond 1023"));
    numbers.push_back(pass.inside);
  }
  std::ranges::sort(numbers);
  if (std::ranges::adjacent_find(numbers) != numbers.end()) {
    return Refuse("descriptors: two for one number");
  }
  return {};
}

Status CheckCommand(const WallPlan& plan) {
  if (plan.arguments.empty() || plan.arguments.front().empty()) return Refuse("command: none");
  SOMA_TRY(CheckCount("arguments", plan.arguments, kPlanArgumentsMax));
  SOMA_TRY(CheckCount("environment", plan.environment, kPlanArgumentsMax));
  for (const std::string& argument : plan.arguments) SOMA_TRY(CheckText("argument", argument));
  for (const std::string& variable : plan.environment) {
    SOMA_TRY(CheckText("environment", variable));
    const auto equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Refuse(StrCat("environment: not NAME=value: ", EscapeForTerminal(variable)));
    }
  }
  if (plan.umask > 0777) return Refuse("umask: beyond 0777");
  return CheckPath("working directory", plan.working_directory);
}

}  // namespace

Status Validate(const WallPlan& plan) {
  SOMA_TRY(CheckNamespaces(plan));
  SOMA_TRY(CheckIdentity(plan));
  SOMA_TRY(CheckMounts(plan));
  SOMA_TRY(CheckPrivileges(plan));
  SOMA_TRY(CheckLimits(plan));
  SOMA_TRY(CheckDescriptors(plan));
  SOMA_TRY(CheckCommand(plan));
  SOMA_TRY(CheckCount("notes", plan.notes));
  for (const std::string& note : plan.notes) SOMA_TRY(CheckText("note", note));
  return {};
}

}  // namespace soma::walls
