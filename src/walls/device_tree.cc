// SPDX-License-Identifier: Apache-2.0
#include "walls/device_tree.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>

#include "sys/fd.h"
#include "sys/mount_fd.h"

namespace soma::walls {
namespace {

struct Node {
  const char* host;
  const char* name;
};
// What ordinary programs need and what holds nothing of the host.
constexpr Node kNodes[] = {{"/dev/null", "null"},       {"/dev/zero", "zero"},
                           {"/dev/full", "full"},       {"/dev/random", "random"},
                           {"/dev/urandom", "urandom"}, {"/dev/tty", "tty"}};

struct Link {
  const char* text;
  const char* name;
};
constexpr Link kLinks[] = {{"/proc/self/fd", "fd"},
                           {"/proc/self/fd/0", "stdin"},
                           {"/proc/self/fd/1", "stdout"},
                           {"/proc/self/fd/2", "stderr"},
                           {"pts/ptmx", "ptmx"}};

int BindNode(int root, const Node& node) {
  const int tree = sys::CloneTree(AT_FDCWD, node.host, false);
  if (tree < 0) return -tree;
  const Fd owner(tree);
  if (::mknodat(root, node.name, S_IFREG | 0666, 0) != 0) return errno;
  return -sys::AttachMountAt(tree, root, node.name);
}

int MountTerminals(int root) {
  const int context = sys::OpenFilesystem("devpts");
  if (context < 0) return -context;
  const Fd owner(context);
  int set = sys::SetFilesystemFlag(context, "newinstance");
  if (set == 0) set = sys::SetFilesystemString(context, "ptmxmode", "0666");
  if (set == 0) set = sys::SetFilesystemString(context, "mode", "0620");
  if (set < 0) return -set;
  const int mount = sys::MakeMount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return -mount;
  const Fd mounted(mount);
  if (::mkdirat(root, "pts", 0755) != 0) return errno;
  return -sys::AttachMountAt(mount, root, "pts");
}

int MountShared(int root, std::uint64_t bytes_max) {
  const int context = sys::OpenFilesystem("tmpfs");
  if (context < 0) return -context;
  const Fd owner(context);
  int set = sys::SetFilesystemString(context, "mode", "1777");
  if (set == 0 && bytes_max != 0) {
    char size[24] = {};
    std::to_chars(size, size + sizeof size - 1, bytes_max);
    set = sys::SetFilesystemString(context, "size", size);
  }
  if (set < 0) return -set;
  const int mount =
      sys::MakeMount(context, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (mount < 0) return -mount;
  const Fd mounted(mount);
  if (::mkdirat(root, "shm", 0755) != 0) return errno;
  return -sys::AttachMountAt(mount, root, "shm");
}

}  // namespace

int FillDeviceTree(int root, std::uint64_t shm_bytes_max) noexcept {
  for (const Node& node : kNodes) {
    const int bound = BindNode(root, node);
    if (bound != 0) return bound;
  }
  // All of them at once; the tree itself has these already.
  const int set = sys::SetMountAttributes(
      root, {.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .recursive = true});
  if (set < 0) return -set;
  for (const Link& link : kLinks) {
    if (::symlinkat(link.text, root, link.name) != 0) return errno;
  }
  const int terminals = MountTerminals(root);
  return terminals != 0 ? terminals : MountShared(root, shm_bytes_max);
}

}  // namespace soma::walls
