// SPDX-License-Identifier: Apache-2.0
#include "walls/recipe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/capability_set.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/mount_fd.h"
#include "walls/launch.h"
#include "walls/plan.h"

namespace soma::walls {
namespace {

// execvp(3) without PATH in the environment looks here (confstr _CS_PATH).
constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

bool IsBelow(std::string_view path, std::string_view above) {
  if (above == "/") return path.size() > 1;
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

bool IsOwnFileSystem(const MountItem& item) {
  if (item.kind == MountKind::kTmpfs || item.kind == MountKind::kDevices) return true;
  const bool handed = item.kind == MountKind::kBind && item.slot.has_value() && !item.read_only;
  return handed || (item.kind == MountKind::kOverlay && !item.upper.empty());
}

Result<int> SlotDescriptor(const LaunchOptions& options, std::uint32_t slot) {
  if (slot < options.descriptors.size() && options.descriptors[slot] >= 0) {
    return options.descriptors[slot];
  }
  return Fail(Errc::kInvalidArgument, StrCat("slot ", slot, ": no descriptor was handed in"));
}

// With the privilege to mount here, the launcher copies the tree itself: the task's host id then
// needs no way to the source.
Result<Fd> PrepareBind(const MountItem& item, int handed) {
  int tree = -1;
  if (item.slot) {
    tree = sys::CloneTree(handed, "", true);
    // A mount that is detached already can't be copied by older kernels (open_tree(2), EINVAL): it
    // is used as it is. Then it is the task's from now on.
    if (tree == -EINVAL) tree = ::fcntl(handed, F_DUPFD_CLOEXEC, 0);
  } else {
    const Fd source(sys::OpenBeneath(AT_FDCWD, item.source.c_str(), O_PATH | O_NOFOLLOW, 0,
                                     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
    tree = source ? sys::CloneTree(source.get(), "", true) : -errno;
  }
  if (tree < 0) return std::unexpected(Error::FromErrno(-tree, "open_tree"));
  Fd owned(tree);
  if (!item.id_map.uids.empty()) {
    SOMA_ASSIGN(const auto space, MakeMappingNamespace(item.id_map.uids, item.id_map.gids));
    const int mapped =
        sys::SetMountAttributes(owned.get(), {.user_namespace = space.get(), .recursive = true});
    if (mapped < 0) return std::unexpected(Error::FromErrno(-mapped, "id-mapped mount"));
  }
  return owned;
}

// Without that privilege the task opens the source by its path, in its own mount namespace. A slot
// is turned into the path it stands for, and the task checks that it found the same object.
Status ResolveSource(const MountItem& item, int handed, MountRecipe& out) {
  out.source = item.source;
  if (!item.slot) return {};
  std::string link(kPlanPathBytesMax + 1, '\0');
  const std::string name = StrCat("/proc/self/fd/", handed);
  const ssize_t size = ::readlink(name.c_str(), link.data(), link.size());
  struct stat seen{};
  if (size <= 0 || ::fstat(handed, &seen) != 0) {
    return std::unexpected(Error::FromErrno(errno, "where the slot points to"));
  }
  link.resize(static_cast<std::size_t>(size));
  out.source = std::move(link);
  out.device = seen.st_dev;
  out.inode = seen.st_ino;
  return {};
}

Status PrepareMount(const MountItem& item, const LaunchOptions& options, bool privileged,
                    MountRecipe& out) {
  if (item.kind == MountKind::kTmpfs) {
    out.size_text = item.size_bytes_max == 0 ? "" : StrCat(item.size_bytes_max);
    out.inodes_text = item.inodes_max == 0 ? "" : StrCat(item.inodes_max);
  }
  if (item.kind == MountKind::kOverlay) {
    out.layers.resize(item.lowers.size() + (item.upper.empty() ? 0 : 2));
  }
  if (item.kind != MountKind::kBind) return {};
  int handed = -1;
  if (item.slot) {
    SOMA_ASSIGN(handed, SlotDescriptor(options, *item.slot));
  }
  if (!privileged) {
    if (!item.id_map.uids.empty()) {
      return Fail(Errc::kPermissionDenied, "an id-mapped mount needs root");
    }
    return ResolveSource(item, handed, out);
  }
  auto prepared = PrepareBind(item, handed);
  if (!prepared) {
    // An empty `prepared` and an empty `source`: the task drops the item.
    if (item.optional && prepared.error().errno_value() == ENOENT) return {};
    return std::unexpected(std::move(prepared).error());
  }
  out.prepared = *std::move(prepared);
  return {};
}

Status PrepareMounts(const LaunchOptions& options, Recipe& recipe) {
  const auto& items = recipe.plan->mounts;
  recipe.mounts.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    MountRecipe& out = recipe.mounts[i];
    std::size_t cover = 0;
    for (std::size_t j = 0; j < items.size(); ++j) {
      if (IsBelow(items[j].target, items[i].target)) out.has_items_below = true;
      if (IsBelow(items[i].target, items[j].target) &&
          items[j].target.size() >= items[cover].target.size()) {
        cover = j;
      }
    }
    out.covered_by_own = i != 0 && IsOwnFileSystem(items[cover]);
    SOMA_TRY_WHILE(PrepareMount(items[i], options, recipe.privileged, out),
                   StrCat("mount ", EscapeForTerminal(items[i].target)));
  }
  return {};
}

void PrepareCommand(Recipe& recipe) {
  const WallPlan& plan = *recipe.plan;
  std::string_view path = kDefaultPath;
  for (const std::string& argument : plan.arguments) recipe.arguments.push_back(argument.c_str());
  for (const std::string& variable : plan.environment) {
    recipe.environment.push_back(variable.c_str());
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  }
  recipe.arguments.push_back(nullptr);
  recipe.environment.push_back(nullptr);
  const std::string& name = plan.arguments.front();
  if (name.find('/') != std::string::npos) {
    recipe.candidates.push_back(name);
    return;
  }
  for (const std::string_view directory : Split(path, ':')) {
    recipe.candidates.push_back(StrCat(directory.empty() ? "." : directory, "/", name));
  }
}

Status PrepareDescriptors(const LaunchOptions& options, Recipe& recipe) {
  const WallPlan& plan = *recipe.plan;
  for (const DescriptorPass& pass : plan.descriptors) {
    SOMA_ASSIGN(const int from, SlotDescriptor(options, pass.slot));
    recipe.passes.push_back({.from = from, .to = static_cast<int>(pass.inside)});
  }
  for (int number = 0; number <= 2; ++number) {
    const bool named = std::ranges::any_of(
        recipe.passes, [number](const Recipe::Pass& pass) { return pass.to == number; });
    if (!named && plan.terminal != TerminalKind::kPty) {
      recipe.passes.push_back({.from = number, .to = number});
    }
  }
  std::ranges::sort(recipe.passes, {}, &Recipe::Pass::to);
  if (plan.execute_slot) {
    SOMA_ASSIGN(recipe.execute_descriptor, SlotDescriptor(options, *plan.execute_slot));
  }
  return {};
}

void PrepareIdentity(Recipe& recipe) {
  const auto& spaces = recipe.plan->user_namespaces;
  for (const UserNamespace& user : spaces) {
    recipe.uid_maps.push_back(IdMapText(user.uids));
    recipe.gid_maps.push_back(IdMapText(user.gids));
  }
  const auto is_own = [](const std::vector<IdRange>& ranges, std::uint32_t id) {
    return ranges.size() == 1 && ranges[0].count == 1 && ranges[0].outside == id;
  };
  const bool single = spaces.size() == 1 && is_own(spaces[0].uids, ::geteuid()) &&
                      is_own(spaces[0].gids, ::getegid());
  // The own id may be mapped by the task itself, without a round trip; anything else needs
  // CAP_SETUID here.
  recipe.maps_by_launcher = !spaces.empty() && !(single && !recipe.privileged);
  recipe.set_groups = spaces.empty() ? sys::HasCapability(CAP_SETGID) : recipe.maps_by_launcher;
}

}  // namespace

Result<Recipe> MakeRecipe(const WallPlan& plan, const LaunchOptions& options) {
  Recipe recipe;
  recipe.plan = &plan;
  recipe.stay = options.stay;
  recipe.privileged = sys::HasCapability(CAP_SYS_ADMIN);
  PrepareIdentity(recipe);
  PrepareCommand(recipe);
  SOMA_TRY(PrepareDescriptors(options, recipe));
  SOMA_TRY(PrepareMounts(options, recipe));
  return recipe;
}

}  // namespace soma::walls
