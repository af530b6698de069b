// SPDX-License-Identifier: Apache-2.0
#include "launcher/roots.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/paths.h"
#include "launcher/sandbox_names.h"
#include "sys/fd.h"
#include "sys/loop_device.h"
#include "sys/mount_fd.h"
#include "sys/plain_file.h"

// <sys/mount.h> of glibc 2.36 and <linux/mount.h> can't be included together.
extern "C" {
int mount(const char* source, const char* target, const char* type, unsigned long flags,
          const void* data) noexcept;
int umount2(const char* target, int flags) noexcept;
}

namespace soma::launcher {
namespace {

// Of sys/mount.h.
constexpr unsigned long kReadOnly = 1;         // MS_RDONLY
constexpr unsigned long kNoSuid = 2;           // MS_NOSUID
constexpr unsigned long kNoDevices = 4;        // MS_NODEV
constexpr unsigned long kRecursive = 16384;    // MS_REC
constexpr unsigned long kSlave = 1UL << 19;    // MS_SLAVE
constexpr unsigned long kPrivate = 1UL << 18;  // MS_PRIVATE
constexpr int kDetach = 2;                     // MNT_DETACH

Status MountAt(const char* source, const std::string& target, const char* type,
               unsigned long flags) {
  if (mount(source, target.c_str(), type, flags, nullptr) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mounting ", type, " at ", target)));
  }
  return {};
}

Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", path)));
  }
  return {};
}

// A mount of the worker's tmpfs that ends with this object; its users inside the kernel keep it.
class TemporaryMount {
 public:
  static Result<TemporaryMount> Attach(const Fd& mount_fd, std::string path) {
    SOMA_TRY(MakeDirectory(path));
    const Fd target(open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const int result = sys::AttachMount(mount_fd.get(), target.get());
    if (result < 0) return std::unexpected(Error::FromErrno(-result, StrCat("attach at ", path)));
    return TemporaryMount(std::move(path));
  }
  TemporaryMount(TemporaryMount&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryMount& operator=(TemporaryMount&&) = delete;
  ~TemporaryMount() {
    if (path_.empty()) return;
    umount2(path_.c_str(), kDetach);
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryMount(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The file itself where the kernel can (6.12), else by a loop device. Through mount(2): the newer
// calls don't take a file for erofs.
Status MountErofs(const std::string& image, const std::string& target) {
  constexpr unsigned long kFlags = kReadOnly | kNoSuid | kNoDevices;
  if (MountAt(image.c_str(), target, "erofs", kFlags)) return {};
  SOMA_ASSIGN(const Fd file, sys::OpenFile(image, O_RDONLY));
  SOMA_ASSIGN(const sys::LoopDevice loop, sys::AttachLoop(file.get(), sys::LoopMode::kReadOnly));
  return MountAt(loop.path.c_str(), target, "erofs", kFlags);
}

Status MountTree(const std::string& tree, const std::string& target) {
  constexpr unsigned long kBind = 4096;   // MS_BIND
  constexpr unsigned long kRemount = 32;  // MS_REMOUNT
  SOMA_TRY(MountAt(tree.c_str(), target, "none", kBind));
  return MountAt("none", target, "none", kBind | kRemount | kReadOnly | kNoDevices);
}

// An overlay whose upper or work directory it can't use mounts read-only and says nothing.
Status CheckWritable(const Fd& mount_fd) {
  struct statvfs stat{};
  if (fstatvfs(mount_fd.get(), &stat) < 0) {
    return std::unexpected(Error::FromErrno(errno, "fstatvfs"));
  }
  if ((stat.f_flag & ST_RDONLY) != 0) {
    return Fail(Errc::kInternal, "the overlay came up read-only: its upper isn't usable");
  }
  return {};
}

Status GiveTo(const Fd& directory, const char* name, std::uint32_t id) {
  if (fchownat(directory.get(), name, id, id, AT_SYMLINK_NOFOLLOW) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chown ", name)));
  }
  return {};
}

}  // namespace

Result<Roots> Roots::Create(const Paths& paths) {
  if (unshare(CLONE_NEWNS) < 0) return std::unexpected(Error::FromErrno(errno, "unshare mounts"));
  // Slave: unmounts outside still arrive here, so we pin no disk of the host; nothing of ours
  // leaves.
  SOMA_TRY(MountAt("none", "/", "none", kSlave | kRecursive));
  SOMA_TRY(MountAt("soma", paths.Mounts(), "tmpfs", kNoSuid | kNoDevices));
  SOMA_TRY(MountAt("none", paths.Mounts(), "none", kPrivate));
  if (chdir(paths.Mounts().c_str()) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chdir ", paths.Mounts())));
  }
  return Roots(paths);
}

Result<std::string> Roots::Lower(const control::TemplateId& template_id) {
  const std::string home = StrCat(paths_.Templates(), "/", template_id.text());
  const std::string image = home + "/root.erofs";
  const std::string tree = home + "/tree";
  struct stat stat{};
  const bool erofs = lstat(image.c_str(), &stat) == 0 && S_ISREG(stat.st_mode);
  if (!erofs && (lstat(tree.c_str(), &stat) < 0 || !S_ISDIR(stat.st_mode))) {
    return Fail(Errc::kNotFound, StrCat("there is no template ", template_id.text()));
  }
  const std::int64_t changed_ns =
      erofs ? (stat.st_mtim.tv_sec * 1'000'000'000) + stat.st_mtim.tv_nsec : 0;
  const auto known = templates_.find(template_id);
  if (known != templates_.end()) {
    if (known->second.inode == stat.st_ino && known->second.changed_ns == changed_ns) {
      return known->second.path;
    }
    umount2(known->second.path.c_str(), kDetach);
    templates_.erase(known);
  }
  const std::string path = StrCat(paths_.Mounts(), "/template-", ++counter_);
  SOMA_TRY(MakeDirectory(path));
  SOMA_TRY(erofs ? MountErofs(image, path) : MountTree(tree, path));
  templates_[template_id] = {.path = path, .inode = stat.st_ino, .changed_ns = changed_ns};
  return path;
}

Result<Fd> Roots::Make(const control::TemplateId& template_id, const Fd& upper, int id_namespace,
                       std::uint32_t first_id, std::string_view host_name) {
  SOMA_ASSIGN(const std::string lower, Lower(template_id));
  SOMA_TRY(GiveTo(upper, "upper", first_id));
  SOMA_TRY(GiveTo(upper, "work", first_id));
  SOMA_TRY(WriteSandboxNames(upper, first_id, first_id, host_name));
  SOMA_ASSIGN(sys::MountFd mapped, sys::MountFd::Clone(lower));
  SOMA_TRY_WHILE(mapped.SetAttributes({.user_namespace = id_namespace}),
                 "mapping the template's ids");
  // Relative names: whoever is inside reads them in its list of mounts.
  SOMA_ASSIGN(const TemporaryMount below, TemporaryMount::Attach(mapped.fd(), "lower"));
  SOMA_ASSIGN(const TemporaryMount above, TemporaryMount::Attach(upper, "upper"));
  // volatile: nothing is synced, the upper ends with its sandbox.
  SOMA_ASSIGN(sys::MountFd overlay,
              sys::MountFd::NewFilesystem("overlay",
                                          {{.key = "lowerdir", .value = below.path()},
                                           {.key = "upperdir", .value = above.path() + "/upper"},
                                           {.key = "workdir", .value = above.path() + "/work"},
                                           {.key = "index", .value = "off"},
                                           {.key = "metacopy", .value = "off"},
                                           {.key = "redirect_dir", .value = "on"},
                                           {.key = "volatile", .value = ""}},
                                          MOUNT_ATTR_NODEV));
  SOMA_TRY(CheckWritable(overlay.fd()));
  return std::move(overlay).Take();
}

}  // namespace soma::launcher
