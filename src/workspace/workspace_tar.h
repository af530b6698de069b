// SPDX-License-Identifier: Apache-2.0
// WorkspaceTar: a directory of the host as a tar stream, for a sandbox that gets a copy of it.
//
// Only what lies in the directory: names are opened one by one below descriptors that are held, and
// no symlink is followed (a link is copied as a link). What `is_hidden` names is left out with
// everything below. Sockets, devices and pipes are left out. Owners are not kept. A file that
// changes meanwhile is copied as it is read, cut or filled with zeros to the size that it had.
//
// Format: ustar (POSIX.1-1988) with GNU's 'L' and 'K' entries for long names, which GNU tar,
// busybox and libarchive read.
#ifndef SOMA_WORKSPACE_WORKSPACE_TAR_H_
#define SOMA_WORKSPACE_WORKSPACE_TAR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::workspace {

struct TarLimits {
  std::uint64_t bytes_max = std::uint64_t{512} << 20;  // of file content
  std::uint64_t entries_max = 100'000;
  std::size_t depth_max = 128;  // one descriptor is held for each level
};

class WorkspaceTar {
 public:
  // `root` is absolute; `is_hidden` is asked for absolute paths.
  static Result<WorkspaceTar> Open(std::string root,
                                   std::function<bool(std::string_view)> is_hidden,
                                   const TarLimits& limits);

  // The next piece of the stream, about kPiece bytes; empty at the end. kOutOfRange when the
  // directory is beyond the limits.
  Result<Bytes> Next();

  std::uint64_t hidden() const { return hidden_; }  // left out because is_hidden said so
  std::uint64_t other() const { return other_; }    // left out: sockets, devices, unreadable files

  static constexpr std::size_t kPiece = 15'000;

 private:
  struct Level {
    Fd directory;
    std::string inside;  // path in the archive, "" for the root
    std::vector<std::string> names;
    std::size_t next = 0;
  };

  WorkspaceTar(std::string root, std::function<bool(std::string_view)> is_hidden,
               const TarLimits& limits)
      : root_(std::move(root)), is_hidden_(std::move(is_hidden)), limits_(limits) {}

  Status Enter(Fd directory, std::string inside);
  Status Step();
  Status AddEntry(const Level& level, const std::string& name);
  Status AddDirectory(const Level& level, const std::string& name, std::string inside);
  Status AddFile(const Level& level, const std::string& name, const std::string& inside);
  Status AddLink(const Level& level, const std::string& name, const std::string& inside);
  Status ReadFile();

  std::string root_;
  std::function<bool(std::string_view)> is_hidden_;
  TarLimits limits_;
  std::vector<Level> levels_;
  Fd file_;                      // being copied
  std::uint64_t file_left_ = 0;  // bytes of it to come
  std::size_t padding_ = 0;      // zeros behind it
  Bytes out_;
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t hidden_ = 0;
  std::uint64_t other_ = 0;
  bool ended_ = false;
};

}  // namespace soma::workspace

#endif  // SOMA_WORKSPACE_WORKSPACE_TAR_H_
