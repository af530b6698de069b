// SPDX-License-Identifier: Apache-2.0
// The builder of the level `process`: one command on the host's own file tree.
//
// Two regimes. With namespaces: the system's directories read-only, the workspace, and own /tmp
// /var/tmp /dev /proc /run and home; nothing else of the host exists. Without (user namespaces
// forbidden): Landlock, a stricter seccomp profile and rlimits over the host's view. What Landlock
// doesn't know stays as it is: names, sizes and times can be seen everywhere, modes and owners of
// the user's files can be changed, processes can be seen and (below Landlock's ABI 6) signalled.
#ifndef SOMA_WALLS_PROCESS_WALLS_H_
#define SOMA_WALLS_PROCESS_WALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "walls/plan.h"

namespace soma::walls {

// Who the command is, outside and inside.
struct RunIdentity {
  std::uint32_t uid = 0;  // inside
  std::uint32_t gid = 0;
  std::uint32_t outside_uid = 0;
  std::uint32_t outside_gid = 0;
  UserNamespace workspace_map;  // for the binds of the caller's files; empty: as they are
  std::string note;             // why it isn't the best; empty if it is
};
// An ordinary caller keeps its ids. For root, uid 0 inside is a host id that nobody has, and an
// id-mapped mount gives the files in `workspace` back to their owner. Where the file system can't
// do that (tried, not guessed), the workspace owner's id is taken, with a note; kPermissionDenied
// if that is root.
Result<RunIdentity> ChooseIdentity(const std::string& workspace);
// The same where there is no mount of the task's own that could map ids: the workspace's owner, for
// root; kPermissionDenied when that is root.
Result<RunIdentity> ChooseIdentityWithoutMaps(const std::string& workspace);

// The top-level directories and links of the host that make up "the system".
struct SystemEntry {
  std::string path;
  std::string link;  // the text, when it is a symlink
};
// Of "/": bin etc gnu lib lib32 lib64 libx32 nix opt sbin usr var.
Result<std::vector<SystemEntry>> ReadSystemEntries();

struct ProcessWallsInput {
  RunIdentity identity;
  std::vector<SystemEntry> system;
  std::string home;       // becomes an own, empty directory
  std::string workspace;  // same path inside
  bool workspace_read_only = false;
  std::vector<std::string>
      readable;  // further host paths, same path inside; missing ones are left out
  std::vector<std::string> writable;
  std::vector<std::string> hidden;  // inside what is bound; missing ones are left out
  std::uint64_t temporary_bytes_max = 1ULL << 30;  // each of /tmp, /var/tmp, home, /dev/shm
  std::uint64_t temporary_inodes_max = 1ULL << 18;
  NetworkKind network = NetworkKind::kLoopback;
  SeccompNotify notify = SeccompNotify::kNone;
  std::vector<ResourceLimit> limits;
  CgroupPlan cgroup;
  TerminalKind terminal = TerminalKind::kNone;
  std::string working_directory;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

WallPlan ProcessWalls(const ProcessWallsInput& input);
// The second path. `network` is kHost, of which the profile `alone` leaves nothing: no socket can
// be made. Of the host's files only `system`, `readable`, the workspace and `writable` can be
// opened; there is no /tmp, /dev/shm or home unless one of these names it.
WallPlan ProcessWallsWithoutNamespaces(const ProcessWallsInput& input);

}  // namespace soma::walls

#endif  // SOMA_WALLS_PROCESS_WALLS_H_
