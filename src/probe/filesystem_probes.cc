// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "probe/erofs_image.h"
#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"
#include "sys/fd.h"
#include "sys/loop_device.h"
#include "sys/mount_fd.h"
#include "sys/process.h"

namespace soma::probe {
namespace {

constexpr std::string_view kRootRemedy = "needs root (soma-launcher of the system); without it: ";

int MakeFile(const std::string& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                            : errno;
}

// In a namespace of its own: a tmpfs on scratch, an overlay in it with userxattr, a write through
// it.
Answer TryOverlay(const Scratch& scratch) {
  std::string_view step;
  if (const int error = EnterNamespaces(CLONE_NEWNS, step); error != 0) return Missing(step, error);
  if (::mount("soma-probe", scratch.path().c_str(), "tmpfs", 0, nullptr) != 0)
    return Missing("mount tmpfs", errno);
  for (const char* name : {"lower", "upper", "work", "merged"})
    ::mkdir(scratch.Child(name).c_str(), 0700);
  if (const int error = MakeFile(scratch.Child("lower/file"), "lower"); error != 0)
    return Missing("write", error);
  const std::string options =
      StrCat("lowerdir=", scratch.Child("lower"), ",upperdir=", scratch.Child("upper"),
             ",workdir=", scratch.Child("work"), ",userxattr");
  const std::string merged = scratch.Child("merged");
  if (::mount("soma-probe", merged.c_str(), "overlay", 0, options.c_str()) != 0)
    return Missing("mount overlay", errno);
  struct statvfs facts{};
  // An overlay whose work directory doesn't suit it is mounted read-only, with success.
  if (::statvfs(merged.c_str(), &facts) != 0 || (facts.f_flag & ST_RDONLY) != 0) {
    return Missing("the overlay is read-only", 0);
  }
  if (const int error = MakeFile(merged + "/file", "changed above"); error != 0)
    return Missing("write", error);
  struct stat lower{};
  if (::stat(scratch.Child("lower/file").c_str(), &lower) != 0 || lower.st_size != 5) {
    return Leaks("a write changed the lower layer");
  }
  return Proven("a write through an overlay left its lower layer as it was");
}

Answer TryFuse(const Scratch& scratch) {
  std::string_view step;
  if (const int error = EnterNamespaces(CLONE_NEWNS, step); error != 0) return Missing(step, error);
  const Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) return Missing("open /dev/fuse", errno);
  const std::string options = StrCat("fd=", device.get(), ",rootmode=40000,user_id=0,group_id=0");
  if (::mount("soma-probe", scratch.path().c_str(), "fuse", MS_NOSUID | MS_NODEV,
              options.c_str()) != 0) {
    return Missing("mount fuse", errno);
  }
  ::umount2(scratch.path().c_str(), MNT_DETACH);
  return Proven("a FUSE file system was mounted in a user namespace");
}

// A user namespace that maps 0 to `outside`, held by a child that sleeps until it is killed.
struct MappedNamespace {
  sys::Process holder;
  Fd fd;
  int error = 0;
};
MappedNamespace MakeMappedNamespace(uid_t outside) {
  MappedNamespace made;
  const pid_t maker = ::getpid();
  const sys::CloneResult child = sys::Clone(CLONE_NEWUSER);
  if (child.pid == 0) {
    sys::DieWithParent(SIGKILL);
    if (::getppid() == maker) ::pause();
    ::_exit(0);
  }
  if (child.pid < 0) return {.holder = {}, .fd = {}, .error = child.error};
  made.holder = sys::Process(child.pid, Fd(child.pidfd));
  const std::string proc = StrCat("/proc/", child.pid);
  made.error = WriteText(proc + "/uid_map", StrCat("0 ", outside, " 1"));
  if (made.error == 0) made.error = WriteText(proc + "/gid_map", StrCat("0 ", outside, " 1"));
  made.fd = Fd(::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  return made;
}

Answer TryIdMap(const Scratch& scratch) {
  constexpr uid_t kOutside = 123456;
  MappedNamespace mapped = MakeMappedNamespace(kOutside);
  if (mapped.error != 0) return Missing("make a mapped user namespace", mapped.error);
  const Fd tree(sys::CloneTree(AT_FDCWD, scratch.path().c_str(), false));
  int error = tree ? 0 : errno;
  if (error == 0) {
    error = -sys::SetMountAttributes(tree.get(),
                                     {.set = MOUNT_ATTR_IDMAP, .user_namespace = mapped.fd.get()});
  }
  mapped.holder.Signal(SIGKILL);
  (void)mapped.holder.Wait();
  if (!tree) return Missing("open_tree", error);
  if (error != 0) return Missing("mount_setattr with an id map", error);
  struct stat facts{};
  if (::fstat(tree.get(), &facts) != 0) return Missing("stat", errno);
  if (facts.st_uid != kOutside) return Leaks("the mapped mount shows the unmapped owner");
  return Proven("a copy of the mount shows its files under another owner");
}

// The image is written, attached and mounted; `by_file`: without a loop device (6.12 or newer).
Answer TryErofs(const Scratch& scratch) {
  const std::string path = scratch.Child("image.erofs");
  if (const int error = MakeFile(path, ErofsImage()); error != 0)
    return Missing("write the image", error);
  auto direct = sys::MountFd::NewFilesystem("erofs", {{"source", path}}, MOUNT_ATTR_RDONLY);
  if (direct) return Proven("an image was mounted from its file, without a loop device");
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto loop = sys::AttachLoop(file.get(), sys::LoopMode::kReadOnly);
  if (!loop)
    return Missing("mount from the file, then attach a loop device", loop.error().errno_value());
  auto mounted = sys::MountFd::NewFilesystem("erofs", {{"source", loop->path}}, MOUNT_ATTR_RDONLY);
  if (!mounted) return Missing("mount", mounted.error().errno_value());
  return Proven("an image was mounted through a loop device");
}

Answer TryLoop(const Scratch& scratch) {
  const std::string path = scratch.Child("disk");
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  constexpr off_t kBytes = off_t{1} << 20;
  if (!file || ::ftruncate(file.get(), kBytes) != 0) return Missing("make a file", errno);
  const auto loop = sys::AttachLoop(file.get(), sys::LoopMode::kReadWrite);
  if (!loop) return Missing("attach", loop.error().errno_value());
  return Proven("a file was attached as a block device, and detached");
}

}  // namespace

Row ProbeOverlay(const Scratch& scratch) {
  return MakeRow(Feature::kOverlay, Try([&] { return TryOverlay(scratch); }),
                 "kernel 5.11 or newer with CONFIG_OVERLAY_FS, and user namespaces");
}

Row ProbeFuse(const Scratch& scratch) {
  return MakeRow(Feature::kFuse, Try([&] { return TryFuse(scratch); }),
                 "`modprobe fuse`, and /dev/fuse open to this user");
}

Row ProbeIdMappedMount(const Scratch& scratch) {
  return MakeRow(
      Feature::kIdMappedMount, Try([&] { return TryIdMap(scratch); }),
      StrCat(kRootRemedy, "a single id. As root: a file system that supports it (not overlayfs)"));
}

Row ProbeErofs(const Scratch& scratch) {
  return MakeRow(Feature::kErofs, Try([&] { return TryErofs(scratch); }),
                 StrCat(kRootRemedy, "templates are unpacked trees. As root: `modprobe erofs`"));
}

Row ProbeLoopDevice(const Scratch& scratch) {
  return MakeRow(Feature::kLoopDevice, Try([&] { return TryLoop(scratch); }),
                 StrCat(kRootRemedy, "quotas are sized tmpfs. As root: `modprobe loop`"));
}

}  // namespace soma::probe
