// SPDX-License-Identifier: Apache-2.0
// The builder of the level `process`: one command on the host's own file tree.
//
// Two regimes. With namespaces: the system's directories read-only, the workspace, and own /tmp
// /var/tmp /dev /proc /run and home; nothing else of the host exists. Without (user namespaces
// forbidden): Landlock, seccomp and rlimits over the host's view, which hides nothing from stat(2)
// and shares the host's /tmp, processes and network; the plan's notes say so.
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
// The second path. `network` kHost only: there is nothing that could keep another promise.
WallPlan ProcessWallsWithoutNamespaces(const ProcessWallsInput& input);

}  // namespace soma::walls

#endif  // SOMA_WALLS_PROCESS_WALLS_H_
