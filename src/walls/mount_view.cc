// SPDX-License-Identifier: Apache-2.0
#include "walls/mount_view.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/mount_fd.h"
#include "walls/device_tree.h"
#include "walls/plan.h"
#include "walls/recipe.h"
#include "walls/step.h"

namespace soma::walls {
namespace {

constexpr unsigned kInside = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr unsigned kInsideFollowing = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;

// All functions below give 0 or an errno, or a descriptor or a negative errno where they say so.

std::uint64_t Attributes(const MountItem& item) {
  std::uint64_t set = MOUNT_ATTR_NODEV;
  if (!item.allow_suid) set |= MOUNT_ATTR_NOSUID;
  if (item.no_exec) set |= MOUNT_ATTR_NOEXEC;
  return set;
}

class ViewBuilder {
 public:
  explicit ViewBuilder(Recipe& recipe) : recipe_(recipe), plan_(*recipe.plan) {}

  StepFailure Build() {
    // Nothing of ours may travel to the host's view, nor the host's later mounts into ours.
    const int alone =
        sys::SetMountAttributesAt("/", {.propagation = MS_PRIVATE, .recursive = true});
    if (alone < 0) return {.step = Step::kMountRoot, .errno_value = -alone};
    if (plan_.mounts.empty()) return {};
    const int rooted = MakeRoot();
    if (rooted != 0) return {.step = Step::kMountRoot, .errno_value = rooted};
    for (std::uint32_t i = 1; i < plan_.mounts.size(); ++i) {
      const int made = MakeItem(i);
      if (made != 0 && !(made == ENOENT && plan_.mounts[i].optional)) {
        return {.step = Step::kMountItem, .item = i, .errno_value = made};
      }
    }
    return SealAndEnter();
  }

 private:
  const MountItem& item(std::uint32_t i) const { return plan_.mounts[i]; }
  int root() const { return recipe_.mounts[0].mount.get(); }

  int MakeRoot() {
    const int mount = MakeMountOf(0);
    if (mount < 0) return -mount;
    recipe_.mounts[0].mount = Fd(mount);
    // On top of the old root: no directory of the host is needed for it. Absolute paths still begin
    // at the process's root, which is below, so sources can be opened until EnterRoot.
    const Fd place(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!place) return errno;
    return -sys::AttachMount(mount, place.get());
  }

  // A descriptor of a detached mount, or a negative errno.
  int MakeMountOf(std::uint32_t i) {
    switch (item(i).kind) {
      case MountKind::kBind:
        return MakeBind(i);
      case MountKind::kTmpfs:
        return MakeTmpfs(i);
      case MountKind::kProc:
        return MakeSimple("proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
      case MountKind::kDevices:
        return MakeSimple("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
      case MountKind::kOverlay:
        return MakeOverlay(i);
      default:
        return -EINVAL;
    }
  }

  static int MakeSimple(const char* type, std::uint64_t attributes) {
    const int context = sys::OpenFilesystem(type);
    if (context < 0) return context;
    const Fd owner(context);
    if (std::strcmp(type, "tmpfs") == 0) {
      const int set = sys::SetFilesystemString(context, "mode", "0755");
      if (set < 0) return set;
    }
    return sys::MakeMount(context, attributes);
  }

  int MakeBind(std::uint32_t i) {
    MountRecipe& own = recipe_.mounts[i];
    int tree = -1;
    if (own.prepared) {
      tree = own.prepared.Release();
    } else if (own.source.empty()) {
      return -ENOENT;
    } else {
      const Fd source(sys::OpenBeneath(AT_FDCWD, own.source.c_str(), O_PATH | O_NOFOLLOW, 0,
                                       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
      if (!source) return -ENOENT;
      struct stat seen{};
      if (own.inode != 0 && (::fstat(source.get(), &seen) != 0 || seen.st_dev != own.device ||
                             seen.st_ino != own.inode)) {
        return -ESTALE;
      }
      tree = sys::CloneTree(source.get(), "", true);
    }
    if (tree < 0) return tree;
    Fd owned(tree);
    std::uint64_t set = Attributes(item(i));
    if (item(i).read_only) set |= MOUNT_ATTR_RDONLY;
    const int done = sys::SetMountAttributes(tree, {.set = set, .recursive = true});
    return done < 0 ? done : owned.Release();
  }

  int MakeTmpfs(std::uint32_t i) {
    const int context = sys::OpenFilesystem("tmpfs");
    if (context < 0) return context;
    const Fd owner(context);
    const MountRecipe& own = recipe_.mounts[i];
    char mode[8] = "0";
    std::to_chars(mode + 1, mode + sizeof mode, item(i).mode, 8);
    int set = sys::SetFilesystemString(context, "mode", mode);
    if (set == 0 && !own.size_text.empty()) {
      set = sys::SetFilesystemString(context, "size", own.size_text.c_str());
    }
    if (set == 0 && !own.inodes_text.empty()) {
      set = sys::SetFilesystemString(context, "nr_inodes", own.inodes_text.c_str());
    }
    return set < 0 ? set : sys::MakeMount(context, Attributes(item(i)));
  }

  // Layers by descriptor: a path would have to be escaped, and is bound to 255 bytes by
  // fsconfig(2).
  struct LayerText {
    char text[256] = {};
    std::size_t size = 0;
    bool Add(int descriptor) {
      constexpr char kPrefix[] = "/proc/self/fd/";
      if (size + sizeof kPrefix + 12 > sizeof text) return false;
      if (size != 0) text[size++] = ':';
      std::memcpy(text + size, kPrefix, sizeof kPrefix - 1);
      size += sizeof kPrefix - 1;
      size = static_cast<std::size_t>(
          std::to_chars(text + size, text + sizeof text, descriptor).ptr - text);
      return true;
    }
  };

  static int OpenLayer(const std::string& path, Fd& out) {
    const int layer = sys::OpenBeneath(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY, 0,
                                       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (layer < 0) return layer;
    out = Fd(layer);
    return 0;
  }

  int SetLayers(int context, std::uint32_t i) {
    const std::span<Fd> layers = recipe_.mounts[i].layers;
    LayerText lower;
    for (std::size_t k = 0; k < item(i).lowers.size(); ++k) {
      const int opened = OpenLayer(item(i).lowers[k], layers[k]);
      if (opened < 0) return opened;
      if (!lower.Add(layers[k].get())) return -E2BIG;
    }
    const int set = sys::SetFilesystemString(context, "lowerdir", lower.text);
    if (set < 0 || item(i).upper.empty()) return set;
    const char* const keys[] = {"upperdir", "workdir"};
    const std::string* const paths[] = {&item(i).upper, &item(i).work};
    for (std::size_t k = 0; k < 2; ++k) {
      Fd& layer = layers[item(i).lowers.size() + k];
      const int opened = OpenLayer(*paths[k], layer);
      LayerText text;
      if (opened < 0) return opened;
      text.Add(layer.get());
      const int done = sys::SetFilesystemString(context, keys[k], text.text);
      if (done < 0) return done;
    }
    return 0;
  }

  int MakeOverlay(std::uint32_t i) {
    const int context = sys::OpenFilesystem("overlay");
    if (context < 0) return context;
    const Fd owner(context);
    int set = SetLayers(context, i);
    // In a user namespace trusted.* attributes are out of reach (overlayfs.rst, "userxattr").
    if (set == 0 && !plan_.user_namespaces.empty())
      set = sys::SetFilesystemFlag(context, "userxattr");
    if (set == 0 && item(i).volatile_upper) set = sys::SetFilesystemFlag(context, "volatile");
    if (set < 0) return set;
    const int mount = sys::MakeMount(context, Attributes(item(i)));
    if (mount < 0 || item(i).upper.empty()) return mount;
    // An overlay that can't use its work directory mounts read-only and calls that success.
    struct statvfs facts{};
    if (::fstatvfs(mount, &facts) != 0 || (facts.f_flag & ST_RDONLY) != 0) {
      ::close(mount);
      return -EROFS;
    }
    return mount;
  }

  int MakeItem(std::uint32_t i) {
    switch (item(i).kind) {
      case MountKind::kSymlink:
        return WithParent(i, [](int parent, const char* name, const MountItem& it) {
          return ::symlinkat(it.source.c_str(), parent, name);
        });
      case MountKind::kDirectory:
        return WithParent(i, [](int parent, const char* name, const MountItem& it) {
          return ::mkdirat(parent, name, it.mode);
        });
      case MountKind::kFile:
        return MakeFile(i);
      case MountKind::kHide:
        return Hide(i);
      default:
        return MakeMountItem(i);
    }
  }

  int MakeMountItem(std::uint32_t i) {
    const int mount = MakeMountOf(i);
    if (mount < 0) return -mount;
    recipe_.mounts[i].mount = Fd(mount);
    const int attached =
        recipe_.mounts[i].covered_by_own ? AttachToOwn(i, mount) : AttachToFound(i, mount);
    if (attached != 0) return attached;
    return item(i).kind == MountKind::kDevices ? FillDeviceTree(mount, item(i).size_bytes_max) : 0;
  }

  int AttachToFound(std::uint32_t i, int mount) {
    const int found =
        sys::OpenBeneath(root(), item(i).target.c_str() + 1, O_PATH | O_NOFOLLOW, 0, kInside);
    if (found < 0) return -found;
    const Fd target(found);
    return -sys::AttachMount(mount, found);
  }

  // The place is made if it is not there: the file system is our own.
  int AttachToOwn(std::uint32_t i, int mount) {
    bool directory = true;
    if (item(i).kind == MountKind::kBind) {
      struct stat seen{};
      if (::fstat(mount, &seen) != 0) return errno;
      directory = S_ISDIR(seen.st_mode);
    }
    return WithParent(i, [=](int parent, const char* name, const MountItem&) {
      const int made =
          directory ? ::mkdirat(parent, name, 0755) : ::mknodat(parent, name, S_IFREG | 0644, 0);
      if (made != 0 && errno != EEXIST) return -1;
      const int attached = sys::AttachMountAt(mount, parent, name);
      if (attached < 0) errno = -attached;
      return attached;
    });
  }

  // Calls `make` with the directory of the target, made as far as needed, and the last component.
  // Only where the file system is our own: nothing is ever created in the user's tree.
  template <typename Make>
  int WithParent(std::uint32_t i, Make make) {
    if (!recipe_.mounts[i].covered_by_own) return ENOENT;
    char path[kPlanPathBytesMax + 1];
    const std::string& target = item(i).target;
    std::memcpy(path, target.c_str() + 1, target.size());
    char* const slash = std::strrchr(path, '/');
    if (slash == nullptr) return make(root(), path, item(i)) < 0 ? errno : 0;
    *slash = '\0';
    const int parent = OpenOrMake(path);
    if (parent < 0) return -parent;
    const Fd owner(parent);
    return make(parent, slash + 1, item(i)) < 0 ? errno : 0;
  }

  // The directory `path` below the root, made as far as it is missing. A descriptor or -errno.
  // `path` is cut while it works.
  int OpenOrMake(char* path) {
    const int whole = sys::OpenBeneath(root(), path, O_PATH | O_DIRECTORY, 0, kInside);
    if (whole != -ENOENT) return whole;
    Fd parent;
    for (char* part = path; part != nullptr;) {
      char* const slash = std::strchr(part, '/');
      if (slash != nullptr) *slash = '\0';
      const int above = parent ? parent.get() : root();
      int next = sys::OpenBeneath(above, part, O_PATH | O_DIRECTORY, 0, kInside);
      if (next == -ENOENT && ::mkdirat(above, part, 0755) == 0) {
        next = sys::OpenBeneath(above, part, O_PATH | O_DIRECTORY, 0, kInside);
      }
      if (next < 0) return next;
      parent = Fd(next);
      part = slash == nullptr ? nullptr : slash + 1;
    }
    return parent.Release();
  }

  static int WriteText(int directory, const char* name, const MountItem& it) {
    const Fd file(
        ::openat(directory, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, it.mode));
    if (!file) return -1;
    const auto size = static_cast<ssize_t>(it.content.size());
    return ::write(file.get(), it.content.data(), it.content.size()) == size ? 0 : -1;
  }

  // A file of our own, bound over what is there: the tree below, which may be the host's, is not
  // touched.
  int MakeFile(std::uint32_t i) {
    const int found =
        sys::OpenBeneath(root(), item(i).target.c_str() + 1, O_PATH, 0, kInsideFollowing);
    if (found == -ENOENT) return WithParent(i, WriteText);
    if (found < 0) return -found;
    const Fd target(found);
    const int scratch = Scratch();
    if (scratch < 0) return EOPNOTSUPP;
    constexpr char kName[] = ".soma-file";
    if (WriteText(scratch, kName, item(i)) != 0) return errno;
    const int attached = AttachFile(scratch, kName, target.get(), item(i));
    // Only now: the kernel attaches no unlinked file (ENOENT), but one that is attached may lose
    // its name.
    (void)::unlinkat(scratch, kName, 0);
    return attached;
  }

  static int AttachFile(int directory, const char* name, int target, const MountItem& it) {
    const int tree = sys::CloneTree(directory, name, false);
    if (tree < 0) return -tree;
    const Fd owner(tree);
    const std::uint64_t set = Attributes(it) | (it.read_only ? MOUNT_ATTR_RDONLY : 0);
    const int done = sys::SetMountAttributes(tree, {.set = set});
    return done < 0 ? -done : -sys::AttachMount(tree, target);
  }

  // An attached tmpfs of this task that isn't sealed yet; -1 if the plan has none (so far).
  int Scratch() const {
    for (std::size_t i = 0; i < plan_.mounts.size(); ++i) {
      const MountKind kind = plan_.mounts[i].kind;
      const bool own = kind == MountKind::kTmpfs || kind == MountKind::kDevices;
      if (own && recipe_.mounts[i].mount) return recipe_.mounts[i].mount.get();
    }
    return -1;
  }

  int Hide(std::uint32_t i) {
    const int found =
        sys::OpenBeneath(root(), item(i).target.c_str() + 1, O_PATH | O_NOFOLLOW, 0, kInside);
    if (found < 0) return -found;
    const Fd target(found);
    struct stat seen{};
    if (::fstat(target.get(), &seen) != 0) return errno;
    int mount = -1;
    if (S_ISDIR(seen.st_mode)) {
      mount = MakeEmptyDirectory();
    } else {
      // A device node on a nodev mount: opening it is EACCES for everybody, root inside included.
      mount = sys::CloneTree(AT_FDCWD, "/dev/null", false);
      if (mount >= 0) {
        const int done = sys::SetMountAttributes(
            mount,
            {.set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY});
        if (done < 0) return -done;
      }
    }
    if (mount < 0) return -mount;
    const Fd owner(mount);
    return -sys::AttachMount(mount, target.get());
  }

  static int MakeEmptyDirectory() {
    const int context = sys::OpenFilesystem("tmpfs");
    if (context < 0) return context;
    const Fd owner(context);
    int set = sys::SetFilesystemString(context, "mode", "0");
    if (set == 0) set = sys::SetFilesystemString(context, "nr_inodes", "1");
    if (set < 0) return set;
    return sys::MakeMount(
        context, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
  }

  // What had to stay writable while things were made on it.
  StepFailure SealAndEnter() {
    for (std::uint32_t i = 0; i < plan_.mounts.size(); ++i) {
      const MountRecipe& own = recipe_.mounts[i];
      const bool seal = item(i).kind == MountKind::kDevices ||
                        (item(i).read_only && item(i).kind != MountKind::kBind);
      if (!seal || !own.mount) continue;
      const int done = sys::SetMountAttributes(own.mount.get(), {.set = MOUNT_ATTR_RDONLY});
      if (done < 0) return {.step = Step::kSealMounts, .item = i, .errno_value = -done};
    }
    const int entered = sys::EnterRoot(root());
    return entered < 0 ? StepFailure{.step = Step::kEnterRoot, .errno_value = -entered}
                       : StepFailure{};
  }

  Recipe& recipe_;
  const WallPlan& plan_;
};

}  // namespace

StepFailure BuildMountView(Recipe& recipe) noexcept { return ViewBuilder(recipe).Build(); }

}  // namespace soma::walls
