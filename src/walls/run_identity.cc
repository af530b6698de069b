// SPDX-License-Identifier: Apache-2.0
// What a process-level plan must know about the machine: who the command can be, and what the
// system is.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/mount_fd.h"
#include "walls/plan.h"
#include "walls/process_walls.h"
#include "walls/recipe.h"

namespace soma::walls {
namespace {

// systemd assigns nothing from 0x70000000 to 0x7fffffff (its UIDS-GIDS document), and our launcher
// takes its ids from the beginning of that (launcher/ids.h, below 0x79000000). A pid, at most 2^22,
// is added: no two sandboxes at a time share an id.
constexpr std::uint32_t kUnusedIdsBegin = 0x7a000000;

// By name, because what else lies in "/" may be somebody's data.
constexpr std::string_view kSystem[] = {"bin",    "etc", "gnu", "lib",  "lib32", "lib64",
                                        "libx32", "nix", "opt", "sbin", "usr",   "var"};

Status TryIdMap(const std::string& path, const UserNamespace& map) {
  SOMA_ASSIGN(auto tree, sys::MountFd::Clone(path));
  SOMA_ASSIGN(const auto space, MakeMappingNamespace(map.uids, map.gids));
  return tree.SetAttributes({.user_namespace = space.get()});
}

RunIdentity CallersOwn() {
  return {.uid = ::geteuid(),
          .gid = ::getegid(),
          .outside_uid = ::geteuid(),
          .outside_gid = ::getegid()};
}

Result<struct stat> OwnerOf(const std::string& workspace) {
  struct stat owner{};
  if (::lstat(workspace.c_str(), &owner) == 0) return owner;
  return std::unexpected(Error::FromErrno(errno, StrCat("stat ", EscapeForTerminal(workspace))));
}

// For root: the owner of the workspace, who may write there anyway.
Result<RunIdentity> OwnersOwn(const std::string& workspace, const struct stat& owner,
                              std::string_view why) {
  if (owner.st_uid == 0 || owner.st_gid == 0) {
    return Fail(Errc::kPermissionDenied,
                StrCat(EscapeForTerminal(workspace), " belongs to root, and ", why,
                       ": the command would be root outside. Give the workspace to another user, "
                       "or start as that user"));
  }
  return RunIdentity{.outside_uid = owner.st_uid,
                     .outside_gid = owner.st_gid,
                     .note = StrCat("identity: runs as the workspace owner's id ", owner.st_uid,
                                    ", because ", why)};
}

struct CloseDir {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

}  // namespace

Result<RunIdentity> ChooseIdentity(const std::string& workspace) {
  if (::geteuid() != 0) return CallersOwn();
  SOMA_ASSIGN(const struct stat owner, OwnerOf(workspace));
  const std::uint32_t unused = kUnusedIdsBegin + static_cast<std::uint32_t>(::getpid());
  const UserNamespace map{.uids = {{owner.st_uid, unused, 1}}, .gids = {{owner.st_gid, unused, 1}}};
  const auto mapped = TryIdMap(workspace, map);
  if (mapped) {
    return RunIdentity{.outside_uid = unused, .outside_gid = unused, .workspace_map = map};
  }
  return OwnersOwn(workspace, owner,
                   StrCat("its file system can't be id-mapped (", mapped.error().message(), ")"));
}

Result<RunIdentity> ChooseIdentityWithoutMaps(const std::string& workspace) {
  if (::geteuid() != 0) return CallersOwn();
  SOMA_ASSIGN(const struct stat owner, OwnerOf(workspace));
  return OwnersOwn(workspace, owner, "ids can't be mapped without namespaces");
}

Result<std::vector<SystemEntry>> ReadSystemEntries() {
  const std::unique_ptr<DIR, CloseDir> root(::opendir("/"));
  if (!root) return std::unexpected(Error::FromErrno(errno, "open /"));
  std::vector<SystemEntry> entries;
  while (const dirent* found = ::readdir(root.get())) {
    const std::string_view name = found->d_name;
    if (std::ranges::find(kSystem, name) == std::end(kSystem)) continue;
    SystemEntry entry{.path = StrCat("/", name), .link = {}};
    struct stat facts{};
    if (::lstat(entry.path.c_str(), &facts) != 0) continue;
    if (S_ISLNK(facts.st_mode)) {
      char text[4096];
      const ssize_t size = ::readlink(entry.path.c_str(), text, sizeof text);
      if (size <= 0) continue;
      entry.link.assign(text, static_cast<std::size_t>(size));
    } else if (!S_ISDIR(facts.st_mode)) {
      continue;
    }
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &SystemEntry::path);
  return entries;
}

}  // namespace soma::walls
