// SPDX-License-Identifier: Apache-2.0
#include "launcher/uppers.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "launcher/paths.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/loop_device.h"
#include "sys/mount_fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

constexpr std::size_t kShelvesMax = 4;

Result<std::string> FindMkfs() {
  for (const char* path : {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"}) {
    if (access(path, X_OK) == 0) return std::string(path);
  }
  return Fail(Errc::kUnimplemented, "mkfs.ext4 (e2fsprogs) is not installed");
}

// No journal: the file system never outlives its sandbox. No reserved blocks: root inside is not
// special. Lazy tables keep the image sparse, about 130 KiB for 512 MiB.
Status FormatImage(const std::string& path, const DiskSize& size) {
  SOMA_ASSIGN(const std::string mkfs, FindMkfs());
  {
    SOMA_ASSIGN(const Fd file, sys::OpenFile(path, O_RDWR | O_CREAT | O_TRUNC));
    SOMA_TRY(sys::Truncate(file, size.bytes));
  }
  return sys::RunProgram(
      {.path = mkfs,
       .arguments = {"mkfs.ext4", "-q", "-t", "ext4", "-F", "-O", "^has_journal,^resize_inode",
                     "-m", "0", "-N", StrCat(size.inodes), "-E", "lazy_itable_init=1,nodiscard",
                     path},
       .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
       .descriptors = {}},
      std::chrono::seconds(30));
}

// Copies only what is not a hole.
Status CopySparse(const Fd& from, const Fd& to) {
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(from));
  SOMA_TRY(sys::Truncate(to, size));
  off_t at = 0;
  for (;;) {
    at = lseek(from.get(), at, SEEK_DATA);
    if (at < 0) break;
    const off_t end = lseek(from.get(), at, SEEK_HOLE);
    if (end < 0) return std::unexpected(Error::FromErrno(errno, "SEEK_HOLE"));
    off_t target = at;
    while (at < end) {
      const ssize_t copied = copy_file_range(from.get(), &at, to.get(), &target,
                                             static_cast<std::size_t>(end - at), 0);
      if (copied <= 0) return std::unexpected(Error::FromErrno(errno, "copy_file_range"));
    }
  }
  // ENXIO: no data after this.
  if (errno != ENXIO) return std::unexpected(Error::FromErrno(errno, "SEEK_DATA"));
  return {};
}

bool IsFull(const std::string& path) {
  struct statvfs space{};
  constexpr std::uint64_t kAlmostNothing = 1UL << 20;
  return statvfs(path.c_str(), &space) == 0 && space.f_bavail * space.f_frsize < kAlmostNothing;
}

Status MakeDirectoryAt(const Fd& mount, const char* name) {
  if (mkdirat(mount.get(), name, 0755) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", name)));
  }
  return {};
}

}  // namespace

Result<std::string> Uppers::BlankOf(const DiskSize& size) {
  std::string path = StrCat(paths_.Blanks(), "/", size.bytes, "-", size.inodes, ".ext4");
  if (access(path.c_str(), F_OK) == 0) return path;
  const std::string fresh = path + ".new";
  if (Status formatted = FormatImage(fresh, size); !formatted) {
    unlink(fresh.c_str());
    // mkfs says why on its standard error only.
    if (IsFull(paths_.Blanks())) {
      return Fail(Errc::kResourceExhausted, "making an empty disk: No space left on device");
    }
    return std::unexpected(std::move(formatted).error().While("making an empty disk"));
  }
  if (rename(fresh.c_str(), path.c_str()) < 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("rename ", fresh)));
  }
  return path;
}

Result<Fd> Uppers::TakeImage(const DiskSize& size) {
  SOMA_ASSIGN(const std::string blank, BlankOf(size));
  SOMA_ASSIGN(const Fd from, sys::OpenFile(blank, O_RDONLY));
  // Never has a name: a worker killed in the middle of the copy leaves nothing behind.
  SOMA_ASSIGN(Fd file, sys::OpenFile(paths_.Uppers(), O_RDWR | O_TMPFILE | O_EXCL));
  SOMA_TRY_WHILE(CopySparse(from, file), "copying an empty disk");
  return file;
}

Result<Fd> Uppers::Make(const DiskSize& size) {
  SOMA_ASSIGN(const Fd file, TakeImage(size));
  SOMA_ASSIGN(const sys::LoopDevice loop, sys::AttachLoop(file.get(), sys::LoopMode::kReadWrite));
  SOMA_ASSIGN(sys::MountFd mount,
              sys::MountFd::NewFilesystem("ext4", {{.key = "source", .value = loop.path}},
                                          MOUNT_ATTR_NODEV));
  SOMA_TRY(MakeDirectoryAt(mount.fd(), "upper"));
  SOMA_TRY(MakeDirectoryAt(mount.fd(), "work"));
  return std::move(mount).Take();
}

Result<Fd> Uppers::Take(const DiskSize& size) {
  const auto shelf = std::ranges::find(shelves_, size, &Shelf::size);
  if (shelf != shelves_.end() && !shelf->ready.empty()) {
    Fd upper = std::move(shelf->ready.back());
    shelf->ready.pop_back();
    return upper;
  }
  return Make(size);
}

// The last one used is the last one; the first is the one to give up.
Uppers::Shelf& Uppers::ShelfOf(const DiskSize& size) {
  const auto found = std::ranges::find(shelves_, size, &Shelf::size);
  if (found != shelves_.end()) {
    std::rotate(found, found + 1, shelves_.end());
    return shelves_.back();
  }
  if (shelves_.size() == kShelvesMax) shelves_.erase(shelves_.begin());
  shelves_.push_back({.size = size, .wanted = 0, .ready = {}});
  return shelves_.back();
}

void Uppers::Keep(const DiskSize& size, std::size_t count) {
  Shelf& shelf = ShelfOf(size);
  shelf.wanted = count;
  if (shelf.ready.size() > count) shelf.ready.resize(count);
}

void Uppers::KeepAtLeast(const DiskSize& size, std::size_t count) {
  Shelf& shelf = ShelfOf(size);
  shelf.wanted = std::max(shelf.wanted, count);
}

Result<bool> Uppers::FillOne() {
  for (Shelf& shelf : shelves_) {
    if (shelf.ready.size() >= shelf.wanted) continue;
    SOMA_ASSIGN(Fd upper, Make(shelf.size));
    shelf.ready.push_back(std::move(upper));
    return true;
  }
  return false;
}

}  // namespace soma::launcher
