// SPDX-License-Identifier: Apache-2.0
// Dir and RelPath: files below a directory that we hold, never by a whole path. Whoever may write
// below it can't make us leave it: every lookup stays beneath (openat2(2) RESOLVE_BENEATH) and
// follows no symlink.
#ifndef SOMA_SYS_DIRECTORY_H_
#define SOMA_SYS_DIRECTORY_H_

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// A relative path of one or more components: no "..", no ".", no empty component, no NUL, no
// leading "/". Made once from foreign text, then trusted in shape (not in what lies there).
class RelPath {
 public:
  static Result<RelPath> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  const char* c_str() const { return text_.c_str(); }
  std::string_view name() const;  // the last component

  friend bool operator==(const RelPath&, const RelPath&) = default;

 private:
  explicit RelPath(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// openat2(2) with RESOLVE_*; a descriptor >= 0 or a negative errno. Between fork and exec too.
// EAGAIN (a rename raced with "..") is tried again.
int OpenBeneath(int directory, const char* path, int flags, unsigned mode,
                unsigned resolve) noexcept;

class Dir {
 public:
  explicit Dir(Fd fd) : fd_(std::move(fd)) {}
  // The one place where a whole path is looked up. Its last component may not be a symlink.
  static Result<Dir> OpenAbsolute(const std::string& path);

  // `flags` as for open(2); O_CLOEXEC and O_NOFOLLOW are added.
  Result<Fd> Open(const RelPath& path, int flags, unsigned mode = 0600) const;
  Result<Dir> OpenDir(const RelPath& path) const;
  // An existing directory is fine.
  Status MakeDir(const RelPath& path, unsigned mode) const;
  Result<struct stat> Stat(const RelPath& path) const;  // doesn't follow
  Status Remove(const RelPath& path) const;  // a file or an empty directory; absent is fine
  // The whole tree below `path` and `path`, of any depth, and what its owner closed to itself;
  // never follows a symlink, never leaves the file system. Absent is fine. Goes on after a failure
  // and reports the first; what is left may then have been opened to its owner.
  Status RemoveTree(const RelPath& path) const;
  // Names in the directory itself, without "." and "..", unsorted.
  Result<std::vector<std::string>> List() const;

  const Fd& fd() const { return fd_; }

 private:
  Fd fd_;
};

// Dir::RemoveTree by an absolute path of ours.
Status RemoveTreeAt(const std::string& path);

}  // namespace soma::sys

#endif  // SOMA_SYS_DIRECTORY_H_
