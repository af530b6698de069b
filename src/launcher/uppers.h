// SPDX-License-Identifier: Apache-2.0
// Uppers: what a sandbox may write, as an ext4 file system of its own with its own size and number
// of inodes, so that a full disk or a flood of small files stops inside with ENOSPC.
//
// The image file is unlinked as soon as it is mounted and the mount exists only as a descriptor:
// when its last user goes, the kernel unmounts it, frees the loop device and the blocks. There is
// nothing to clean up after a crash. Root only.
#ifndef SOMA_LAUNCHER_UPPERS_H_
#define SOMA_LAUNCHER_UPPERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/paths.h"
#include "sys/fd.h"

namespace soma::launcher {

struct DiskSize {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  friend bool operator==(const DiskSize&, const DiskSize&) = default;
};

class Uppers {
 public:
  explicit Uppers(Paths paths) : paths_(std::move(paths)) {}

  // A ready one of this size, else a new one (1 to 2 ms; the first of a size also pays for mkfs).
  // The descriptor is a detached mount with the directories "upper" and "work".
  Result<Fd> Take(const DiskSize& size);
  // For a virtual machine: the image itself, open read-write, already without a name, not mounted.
  Result<Fd> TakeImage(const DiskSize& size);

  // From now on FillOne keeps `count` of this size ready. Only the last few sizes are kept, so that
  // a server that asks for ever new ones can't fill the disk.
  void Keep(const DiskSize& size, std::size_t count);
  // As Keep, but never fewer than were asked for by Keep.
  void KeepAtLeast(const DiskSize& size, std::size_t count);
  // Makes one that is missing; false when none is. Called while there is nothing else to do.
  Result<bool> FillOne();

 private:
  struct Shelf {
    DiskSize size;
    std::size_t wanted = 0;
    std::vector<Fd> ready;
  };
  Result<std::string> BlankOf(const DiskSize& size);
  Result<Fd> Make(const DiskSize& size);
  Shelf& ShelfOf(const DiskSize& size);

  Paths paths_;
  std::vector<Shelf> shelves_;
};

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_UPPERS_H_
