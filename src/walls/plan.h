// SPDX-License-Identifier: Apache-2.0
// WallPlan: everything that stands between one task and the machine, as plain data.
//
// A plan is made by a pure builder (walls/profiles.h, the room `plan`), printed for people
// (`Describe`), checked (`Validate`), handed over between our own processes if need be (`Encode`,
// `Decode`: bounded, for foreign bytes), and then applied step by named step (walls/launch.h).
// It holds no descriptor and no pointer. What only exists as a descriptor is named by a slot:
// an index into LaunchOptions::descriptors.
//
// Paths: absolute, normalised (no "//", ".", "..", no trailing "/"), no NUL byte. `source` paths
// are on the host, without symlinks in them; `target` paths are inside. They may hold any other
// byte.
#ifndef SOMA_WALLS_PLAN_H_
#define SOMA_WALLS_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "walls/seccomp_profile.h"

namespace soma::walls {

// The bound of every list and text: a plan beyond it is not valid and is not decoded.
inline constexpr std::size_t kPlanPathBytesMax = 4095;  // PATH_MAX - 1, linux/limits.h
inline constexpr std::size_t kPlanItemsMax = 1024;      // per list
inline constexpr std::size_t kPlanTextBytesMax =
    128UL * 1024;  // one argument: MAX_ARG_STRLEN, binfmts.h
inline constexpr std::size_t kPlanArgumentsMax = 16UL * 1024;  // argv, environment
inline constexpr std::size_t kPlanEncodedBytesMax = 8UL * 1024 * 1024;

// Namespaces that the task gets anew; what isn't there is shared with whoever launches.
enum class Namespaces : std::uint16_t {
  kNone = 0,
  kMount = 1 << 0,
  kPid = 1 << 1,
  kNetwork = 1 << 2,
  kIpc = 1 << 3,
  kUts = 1 << 4,
  kCgroup = 1 << 5,
  kAll = 0x3f,  // user namespaces are UserNamespace, because they need maps
};
constexpr Namespaces operator|(Namespaces a, Namespaces b) {
  return static_cast<Namespaces>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Namespaces operator&(Namespaces a, Namespaces b) {
  return static_cast<Namespaces>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr bool Has(Namespaces set, Namespaces one) { return (set & one) == one; }

// `count` ids from `inside` on are the ids from `outside` on in the parent user namespace.
struct IdRange {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 1;
  friend bool operator==(const IdRange&, const IdRange&) = default;
};

// Without privilege over the outside ids only one range of count 1, the caller's own id, can be
// written; then setgroups is refused for ever and the caller's supplementary groups stay.
struct UserNamespace {
  std::vector<IdRange> uids;
  std::vector<IdRange> gids;
  friend bool operator==(const UserNamespace&, const UserNamespace&) = default;
};

enum class MountKind : std::uint8_t {
  kBind = 1,   // `source` or `slot` (a directory or file, or a detached mount) appears at `target`
  kTmpfs = 2,  // empty, `size_bytes_max`, `inodes_max`, `mode`
  kProc = 3,   // of the own pid namespace
  // /dev: tmpfs with null zero full random urandom tty, fd std{in,out,err}, pts, ptmx, shm
  kDevices = 4,
  kOverlay = 5,    // `lowers` (top first) below `upper`/`work`; without `upper` it is read-only
  kSymlink = 6,    // a symlink with the text `source`
  kDirectory = 7,  // an empty directory with `mode`
  kFile = 8,  // a small file with the text `content`, over what is there (symlinks followed inside)
  kHide = 9,  // what is there disappears: an empty unreadable directory or file on top of it
};

struct MountItem {
  MountKind kind = MountKind::kBind;
  std::string target;  // "/" exactly once, first: the root of the view
  std::string source;
  std::optional<std::uint32_t> slot;
  // All mounts are nosuid and, but for kDevices, nodev, unless one of these says otherwise.
  bool read_only = false;  // applied last for what has other items below it; recursive for binds
  bool no_exec = false;
  bool allow_suid = false;  // setuid programs work (profile `rooted`; no_new_privs must be off too)
  // A missing source, or a target that isn't there and can't be made, drops the item silently.
  bool optional = false;
  std::uint64_t size_bytes_max = 0;  // kTmpfs; 0 = the kernel's default, half of memory
  std::uint64_t inodes_max = 0;      // kTmpfs; 0 = the kernel's default
  std::uint32_t mode = 0755;         // kTmpfs, kDirectory, kFile
  std::string content;               // kFile
  std::vector<std::string> lowers;   // kOverlay
  std::string upper;                 // kOverlay
  std::string work;                  // kOverlay
  bool volatile_upper = false;       // kOverlay: no sync at all, the upper dies with the task
  // kBind: ids of the file system (`inside`) appear as these host ids (`outside`). Needs
  // CAP_SYS_ADMIN over the file system, i.e. root, and a file system that can do it. Empty: as they
  // are.
  UserNamespace id_map;
  friend bool operator==(const MountItem&, const MountItem&) = default;
};

// What Landlock allows below `path` (inside); everything else that it handles is refused.
struct LandlockRule {
  std::string path;
  std::uint64_t rights = 0;  // sys/landlock.h: LandlockFs; what the kernel doesn't know is left out
  bool optional = false;     // a missing path drops the rule
  friend bool operator==(const LandlockRule&, const LandlockRule&) = default;
};
struct LandlockPlan {
  bool enabled = false;
  // The plan isn't applied on a kernel with less (fail closed); the highest ABI there is always
  // used.
  std::uint32_t abi_min = 1;
  std::vector<LandlockRule> rules;
  bool scope_signals = true;           // ABI 6
  bool scope_abstract_sockets = true;  // ABI 6
  friend bool operator==(const LandlockPlan&, const LandlockPlan&) = default;
};

struct SeccompPlan {
  bool enabled = false;
  SeccompProfile profile = SeccompProfile::kStrict;
  // With kMutating RunningTask::TakeListener gives the listener; it must be served for execve to
  // work.
  SeccompNotify notify = SeccompNotify::kNone;
  friend bool operator==(const SeccompPlan&, const SeccompPlan&) = default;
};

enum class NetworkKind : std::uint8_t {
  kHost = 0,      // the launcher's own network
  kLoopback = 1,  // own namespace, only `lo`, up
  kCapture = 2,   // kLoopback, and every connect loops into listeners that Launch hands out
};

// setrlimit(2); soft = hard. `resource` is RLIMIT_*. A value above the hard limit that can't be
// raised becomes the hard limit.
struct ResourceLimit {
  std::uint32_t resource = 0;
  std::uint64_t value = 0;
  friend bool operator==(const ResourceLimit&, const ResourceLimit&) = default;
};

enum class CgroupMode : std::uint8_t {
  kNone = 0,    // stay where the launcher is; limits come from `limits` (the named regime "rlimit")
  kCreate = 1,  // Launch makes `name` below the launcher's own cgroup and removes it at the end
  kJoin = 2,  // the directories in `slots` (one a v1 hierarchy, or one v2) exist and keep existing
};
struct CgroupPlan {
  CgroupMode mode = CgroupMode::kNone;
  std::string name;                  // kCreate: one path component
  std::vector<std::uint32_t> slots;  // kJoin
  std::uint64_t memory_bytes_max =
      0;                              // 0 = not set; swap is forbidden where the kernel accounts it
  std::uint64_t pids_max = 0;         // 0 = not set
  std::uint64_t cpu_percent_max = 0;  // of one CPU: 150 is one and a half; 0 = not set
  friend bool operator==(const CgroupPlan&, const CgroupPlan&) = default;
};

enum class TerminalKind : std::uint8_t {
  kNone = 0,  // standard streams as they are, own session, no controlling terminal
  kPty = 1,   // own pty from the own /dev/pts, controlling terminal; RunningTask::TakeTerminal
  kKeep = 2,  // stay in the launcher's session (second path and tests only: TIOCSTI)
};

// Descriptor `slot` becomes number `inside` in the task. 0, 1, 2 are the launcher's unless named.
struct DescriptorPass {
  std::uint32_t slot = 0;
  std::uint32_t inside = 0;
  friend bool operator==(const DescriptorPass&, const DescriptorPass&) = default;
};

struct WallPlan {
  // Outermost first; none, one or two. With two, the first owns the network namespace (root inside
  // the second can't touch netfilter or routes) and the second owns all others.
  std::vector<UserNamespace> user_namespaces;
  Namespaces namespaces = Namespaces::kNone;
  // pid 1 inside is our own forked init (reaps, dies with the launcher), the command is pid 2.
  // Without it the command itself is pid 1, or an ordinary child if no pid namespace is made.
  bool init = true;
  std::string host_name;  // with Namespaces::kUts; empty = keep

  std::vector<MountItem> mounts;  // with Namespaces::kMount; empty = the launcher's view, private

  NetworkKind network = NetworkKind::kHost;

  std::uint32_t uid = 0;  // inside
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;      // set when there is the privilege to; see UserNamespace
  std::uint64_t capability_bounding = 0;  // bit n = capability n of linux/capability.h
  bool keep_capabilities = false;  // the task starts with the bounding set in effect (uid 0 inside)
  bool no_new_privs = true;

  LandlockPlan landlock;
  SeccompPlan seccomp;
  std::vector<ResourceLimit> limits;
  CgroupPlan cgroup;
  TerminalKind terminal = TerminalKind::kNone;
  std::vector<DescriptorPass> descriptors;

  std::string working_directory = "/";  // inside
  std::vector<std::string>
      arguments;  // a name without "/" is searched in the PATH of `environment`
  // The program as a descriptor (execveat AT_EMPTY_PATH): for what isn't in the view. `arguments`
  // then only say what it is called.
  std::optional<std::uint32_t> execute_slot;
  std::vector<std::string> environment;  // NAME=value; exactly this
  std::uint32_t umask = 022;

  // Why the walls are as they are where that is not the best: "limits: rlimit (no writable
  // cgroup)". Printed and recorded, never applied.
  std::vector<std::string> notes;

  friend bool operator==(const WallPlan&, const WallPlan&) = default;
};

// One line an item, in the order of application, foreign bytes escaped. Stable enough for --explain
// and for tests that look for a line.
std::vector<std::string> Describe(const WallPlan& plan);

// What no launcher should try: unnormalised or doubled targets, no root item, an id that isn't
// mapped, more than two user namespaces, rules that contradict each other, anything beyond the
// bounds above. The message names the item.
Status Validate(const WallPlan& plan);

Bytes Encode(const WallPlan& plan);
// From untrusted bytes. kOutOfRange beyond a bound, kInvalidArgument for anything malformed or left
// over, and for what Validate refuses.
Result<WallPlan> Decode(ByteView encoded);

}  // namespace soma::walls

#endif  // SOMA_WALLS_PLAN_H_
