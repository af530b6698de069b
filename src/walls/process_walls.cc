// SPDX-License-Identifier: Apache-2.0
#include "walls/process_walls.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/landlock.h"
#include "walls/plan.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {
namespace {

constexpr std::uint64_t kReadExecute = sys::kLandlockReadExecute;
constexpr std::uint64_t kEverything = sys::kLandlockReadExecute | sys::kLandlockWrite;
// Device files are written and spoken to, never made.
constexpr std::uint64_t kDeviceUse =
    sys::kLandlockRead | sys::kLandlockWriteFile | sys::kLandlockIoctlDev;

bool IsAtOrBelow(std::string_view path, std::string_view above) {
  if (above == "/" || path == above) return true;
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

class ProcessPlan {
 public:
  explicit ProcessPlan(const ProcessWallsInput& input) : input_(input) {}

  WallPlan Namespaced() {
    plan_.user_namespaces = {{.uids = {{input_.identity.uid, input_.identity.outside_uid, 1}},
                              .gids = {{input_.identity.gid, input_.identity.outside_gid, 1}}}};
    plan_.namespaces = input_.network == NetworkKind::kHost
                           ? Namespaces::kMount | Namespaces::kPid | Namespaces::kIpc |
                                 Namespaces::kUts | Namespaces::kCgroup
                           : Namespaces::kAll;
    plan_.host_name = "soma";
    plan_.network = input_.network;
    AddView();
    AddViewRules();
    AddCommon();
    return std::move(plan_);
  }

  WallPlan Unnamespaced() {
    plan_.notes.emplace_back(
        "second path: no namespaces; Landlock, seccomp and rlimits over the host's own view");
    AddHostRules();
    AddCommon();
    plan_.seccomp.profile = SeccompProfile::kAlone;
    return std::move(plan_);
  }

 private:
  void AddCommon() {
    plan_.uid = input_.identity.uid;
    plan_.gid = input_.identity.gid;
    plan_.landlock.enabled = true;
    plan_.seccomp = {.enabled = true, .profile = SeccompProfile::kStrict, .notify = input_.notify};
    plan_.limits = input_.limits;
    plan_.cgroup = input_.cgroup;
    plan_.terminal = input_.terminal;
    plan_.working_directory = input_.working_directory;
    plan_.arguments = input_.arguments;
    plan_.environment = input_.environment;
    if (!input_.identity.note.empty()) plan_.notes.push_back(input_.identity.note);
  }

  void AddTemporary(std::string target, std::uint32_t mode) {
    plan_.mounts.push_back({.kind = MountKind::kTmpfs,
                            .target = std::move(target),
                            .size_bytes_max = input_.temporary_bytes_max,
                            .inodes_max = input_.temporary_inodes_max,
                            .mode = mode});
  }

  void AddBind(const std::string& path, bool read_only, bool optional) {
    plan_.mounts.push_back({.kind = MountKind::kBind,
                            .target = path,
                            .source = path,
                            .read_only = read_only,
                            .optional = optional,
                            .id_map = input_.identity.workspace_map});
  }

  // Parents before children, whoever asked for them.
  void AddHostBinds() {
    struct Wish {
      std::string path;
      bool read_only;
      bool optional;
    };
    std::vector<Wish> wishes = {{input_.workspace, input_.workspace_read_only, false}};
    for (const std::string& path : input_.writable) wishes.push_back({path, false, true});
    for (const std::string& path : input_.readable) wishes.push_back({path, true, true});
    // At one path the writable wish comes first, so that it is the one that counts.
    std::ranges::sort(wishes, [](const Wish& a, const Wish& b) {
      return a.path != b.path ? a.path < b.path : !a.read_only && b.read_only;
    });
    std::string_view last;
    for (const Wish& wish : wishes) {
      if (wish.path == last || Taken(wish.path)) continue;
      AddBind(wish.path, wish.read_only, wish.optional);
      last = wish.path;
    }
  }

  bool Taken(std::string_view path) const {
    return std::ranges::any_of(plan_.mounts,
                               [path](const MountItem& item) { return item.target == path; });
  }

  void AddView() {
    plan_.mounts.push_back({.kind = MountKind::kTmpfs,
                            .target = "/",
                            .read_only = true,
                            .size_bytes_max = 1 << 20,
                            .inodes_max = 4096});
    for (const SystemEntry& entry : input_.system) {
      if (entry.link.empty()) {
        plan_.mounts.push_back({.kind = MountKind::kBind,
                                .target = entry.path,
                                .source = entry.path,
                                .read_only = true});
      } else {
        plan_.mounts.push_back(
            {.kind = MountKind::kSymlink, .target = entry.path, .source = entry.link});
      }
    }
    plan_.mounts.push_back({.kind = MountKind::kProc, .target = "/proc"});
    plan_.mounts.push_back({.kind = MountKind::kDevices,
                            .target = "/dev",
                            .size_bytes_max = input_.temporary_bytes_max});
    plan_.mounts.push_back({.kind = MountKind::kDirectory, .target = "/run"});
    AddTemporary("/tmp", 01777);
    AddTemporary("/var/tmp", 01777);
    plan_.mounts.back().optional = true;
    if (!input_.home.empty() && input_.home != "/" && input_.home != input_.workspace &&
        !IsAtOrBelow(input_.home, "/tmp")) {
      AddTemporary(input_.home, 0700);
      plan_.mounts.back().optional = true;
    }
    AddHostBinds();
    for (const std::string& path : input_.hidden) {
      if (Taken(path)) continue;
      plan_.mounts.push_back({.kind = MountKind::kHide, .target = path, .optional = true});
    }
  }

  void Allow(std::string path, std::uint64_t rights, bool optional) {
    plan_.landlock.rules.push_back(
        {.path = std::move(path), .rights = rights, .optional = optional});
  }

  // The view is the first wall; this one stands if somebody gets out of it, and for read-only
  // mounts.
  void AddViewRules() {
    Allow("/", kReadExecute, false);
    Allow("/dev", kDeviceUse, false);
    Allow("/proc", sys::kLandlockRead | sys::kLandlockWriteFile, false);
    for (const std::string_view path : {"/tmp", "/var/tmp", "/dev/shm"}) {
      Allow(std::string(path), kEverything, true);
    }
    if (!input_.home.empty() && input_.home != "/") Allow(input_.home, kEverything, true);
    AddWritableRules();
  }

  void AddWritableRules() {
    if (!input_.workspace_read_only) Allow(input_.workspace, kEverything, false);
    for (const std::string& path : input_.writable) Allow(path, kEverything, true);
  }

  void AddHostRules() {
    for (const SystemEntry& entry : input_.system) {
      if (entry.link.empty()) Allow(entry.path, kReadExecute, true);
    }
    Allow("/proc", sys::kLandlockRead, true);
    // Not /dev/pts: the user's other terminals are there.
    for (const std::string_view device :
         {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}) {
      Allow(std::string(device), kDeviceUse, true);
    }
    if (input_.workspace_read_only) Allow(input_.workspace, kReadExecute, false);
    AddWritableRules();
    for (const std::string& path : input_.readable) Allow(path, kReadExecute, true);
  }

  const ProcessWallsInput& input_;
  WallPlan plan_;
};

}  // namespace

WallPlan ProcessWalls(const ProcessWallsInput& input) { return ProcessPlan(input).Namespaced(); }

WallPlan ProcessWallsWithoutNamespaces(const ProcessWallsInput& input) {
  return ProcessPlan(input).Unnamespaced();
}

}  // namespace soma::walls
