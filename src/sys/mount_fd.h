// SPDX-License-Identifier: Apache-2.0
// Mounts as descriptors: trees are copied, given their attributes and only then attached, so that
// no path is looked up twice and nothing half-made is ever visible.
//
// The raw calls are for between fork and exec (no allocation): they give a descriptor >= 0, or 0,
// or a negative errno. MountFd is the owning form for elsewhere. Sources: open_tree(2),
// move_mount(2), mount_setattr(2), fsopen(2) of man-pages 6.15 and linux/mount.h.
#ifndef SOMA_SYS_MOUNT_FD_H_
#define SOMA_SYS_MOUNT_FD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// A detached copy of the tree at `path` below `directory` (an empty path: the descriptor itself).
// The mount must be in the caller's own mount namespace. Symlinks in the last component aren't
// followed.
int CloneTree(int directory, const char* path, bool recursive) noexcept;

// Sets (`set`) and clears attributes MOUNT_ATTR_* of a tree. `user_namespace` >= 0 id-maps it by
// that one.
struct MountAttributes {
  std::uint64_t set = 0;
  std::uint64_t clear = 0;
  std::uint64_t propagation = 0;  // MS_PRIVATE, MS_SLAVE; 0 = unchanged
  int user_namespace = -1;
  bool recursive = false;
};
int SetMountAttributes(int mount, const MountAttributes& attributes) noexcept;
int SetMountAttributesAt(const char* path, const MountAttributes& attributes) noexcept;

// Attaches the detached `mount` on top of what `target` refers to (O_PATH).
int AttachMount(int mount, int target) noexcept;
// … or on top of `name` in `directory`, which is not followed if it is a symlink. Only for a
// directory in which nobody else can put one: an attached symlink hides nothing.
int AttachMountAt(int mount, int directory, const char* name) noexcept;

// A new file system in three steps: open a context, set parameters, make a detached mount.
int OpenFilesystem(const char* type) noexcept;
int SetFilesystemString(int context, const char* key, const char* value) noexcept;
int SetFilesystemFlag(int context, const char* key) noexcept;
// `attributes` are MOUNT_ATTR_*.
int MakeMount(int context, std::uint64_t attributes) noexcept;

// Makes `root` (a mount attached in this namespace) the root of this mount namespace and of the
// calling process, and lets go of the old one. 0 or a negative errno.
int EnterRoot(int root) noexcept;

class MountFd {
 public:
  explicit MountFd(Fd fd) : fd_(std::move(fd)) {}
  // A detached, recursive copy of the tree at `path` (absolute, its last component not a symlink).
  static Result<MountFd> Clone(const std::string& path);
  // A new file system, e.g. NewFilesystem("tmpfs", {{"size", "64m"}}, MOUNT_ATTR_NOSUID).
  struct Parameter {
    std::string key;
    std::string value;  // empty: a flag
  };
  static Result<MountFd> NewFilesystem(const std::string& type,
                                       const std::vector<Parameter>& parameters,
                                       std::uint64_t attributes);

  Status SetAttributes(const MountAttributes& attributes);
  // At `target` (an existing path) of this mount namespace.
  Status AttachAt(const std::string& target);
  const Fd& fd() const { return fd_; }
  Fd Take() && { return std::move(fd_); }

 private:
  Fd fd_;
};

}  // namespace soma::sys

#endif  // SOMA_SYS_MOUNT_FD_H_
