// SPDX-License-Identifier: Apache-2.0
#include "sys/mount_fd.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::sys {
namespace {

int OrError(int result) noexcept { return result >= 0 ? result : -errno; }

Error Failed(int negative_errno, std::string_view what) {
  return Error::FromErrno(-negative_errno, what);
}

}  // namespace

int CloneTree(int directory, const char* path, bool recursive) noexcept {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (*path == '\0') flags |= AT_EMPTY_PATH;
  if (recursive) flags |= AT_RECURSIVE;
  return OrError(::open_tree(directory, path, flags));
}

namespace {
int SetAt(int directory, const char* path, unsigned flags, const MountAttributes& wanted) noexcept {
  mount_attr attributes{};
  attributes.attr_set = wanted.set;
  attributes.attr_clr = wanted.clear;
  attributes.propagation = wanted.propagation;
  if (wanted.user_namespace >= 0) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<std::uint64_t>(wanted.user_namespace);
  }
  if (wanted.recursive) flags |= AT_RECURSIVE;
  return OrError(::mount_setattr(directory, path, flags, &attributes, sizeof attributes));
}
}  // namespace

int SetMountAttributes(int mount, const MountAttributes& attributes) noexcept {
  return SetAt(mount, "", AT_EMPTY_PATH, attributes);
}

int SetMountAttributesAt(const char* path, const MountAttributes& attributes) noexcept {
  return SetAt(AT_FDCWD, path, 0, attributes);
}

int AttachMount(int mount, int target) noexcept {
  return OrError(
      ::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int AttachMountAt(int mount, int directory, const char* name) noexcept {
  return OrError(::move_mount(mount, "", directory, name, MOVE_MOUNT_F_EMPTY_PATH));
}

int OpenFilesystem(const char* type) noexcept { return OrError(::fsopen(type, FSOPEN_CLOEXEC)); }

int SetFilesystemString(int context, const char* key, const char* value) noexcept {
  return OrError(::fsconfig(context, FSCONFIG_SET_STRING, key, value, 0));
}

int SetFilesystemFlag(int context, const char* key) noexcept {
  return OrError(::fsconfig(context, FSCONFIG_SET_FLAG, key, nullptr, 0));
}

int MakeMount(int context, std::uint64_t attributes) noexcept {
  const int created = OrError(::fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
  if (created < 0) return created;
  return OrError(::fsmount(context, FSMOUNT_CLOEXEC, static_cast<unsigned>(attributes)));
}

int EnterRoot(int root) noexcept {
  if (::fchdir(root) != 0) return -errno;
  // The same directory twice: the old root ends up on top of the new one and is detached by its
  // name "." (pivot_root(2), "pivot_root(".", ".")"), so no place for it is needed.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return -errno;
  if (::umount2(".", MNT_DETACH) != 0) return -errno;
  return OrError(::chdir("/"));
}

Result<MountFd> MountFd::Clone(const std::string& path) {
  Fd fd(CloneTree(AT_FDCWD, path.c_str(), true));
  if (!fd) return std::unexpected(Error::FromErrno(errno, StrCat("open_tree ", path)));
  return MountFd(std::move(fd));
}

Result<MountFd> MountFd::NewFilesystem(const std::string& type,
                                       const std::vector<Parameter>& parameters,
                                       std::uint64_t attributes) {
  const int context = OpenFilesystem(type.c_str());
  if (context < 0) return std::unexpected(Failed(context, StrCat("fsopen ", type)));
  const Fd owner(context);
  for (const Parameter& parameter : parameters) {
    const int set = parameter.value.empty() ? SetFilesystemFlag(context, parameter.key.c_str())
                                            : SetFilesystemString(context, parameter.key.c_str(),
                                                                  parameter.value.c_str());
    if (set < 0) {
      return std::unexpected(Failed(set, StrCat("fsconfig ", type, " ", parameter.key)));
    }
  }
  const int mount = MakeMount(context, attributes);
  if (mount < 0) return std::unexpected(Failed(mount, StrCat("fsmount ", type)));
  return MountFd(Fd(mount));
}

Status MountFd::SetAttributes(const MountAttributes& attributes) {
  const int set = SetMountAttributes(fd_.get(), attributes);
  if (set < 0) return std::unexpected(Failed(set, "mount_setattr"));
  return {};
}

Status MountFd::AttachAt(const std::string& target) {
  const Fd place(::open(target.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return std::unexpected(Error::FromErrno(errno, StrCat("open ", target)));
  const int attached = AttachMount(fd_.get(), place.get());
  if (attached < 0) return std::unexpected(Failed(attached, StrCat("move_mount to ", target)));
  return {};
}

}  // namespace soma::sys
