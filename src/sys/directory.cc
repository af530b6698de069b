// SPDX-License-Identifier: Apache-2.0
#include "sys/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {
namespace {

constexpr unsigned kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
// One descriptor is held for each level; what lies deeper is moved up.
constexpr int kDepthMax = 128;

Error Failed(std::string_view call, std::string_view path) {
  return Error::FromErrno(errno, StrCat(call, " ", EscapeForTerminal(path)));
}

// kBeneath where there is no openat2, which is inside a sandbox of ours: one component at a time,
// none of which may be a link or lead upwards. Only for relative paths.
int OpenStepByStep(int directory, const char* path, int flags, unsigned mode) noexcept {
  Fd above;
  int at = directory;
  for (const char* part = path;;) {
    const char* const slash = ::strchrnul(part, '/');
    const std::string_view name(part, static_cast<std::size_t>(slash - part));
    char text[NAME_MAX + 1] = {};
    if (name.empty() || name == ".." || name.size() > NAME_MAX) return -EINVAL;
    name.copy(text, name.size());
    const bool last = *slash == '\0';
    const int how = last ? flags : O_PATH | O_DIRECTORY;
    const int next = ::openat(at, text, how | O_NOFOLLOW | O_CLOEXEC, mode);
    if (next < 0) return -errno;
    if (last) return next;
    above = Fd(next);
    at = next;
    part = slash + 1;
  }
}

// The directory that holds the last component of `path`, opened beneath.
Result<Fd> OpenParent(int directory, const RelPath& path) {
  const auto slash = path.text().rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.text().substr(0, slash);
  const int fd =
      OpenBeneath(directory, parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0, kBeneath);
  if (fd < 0)
    return std::unexpected(Error::FromErrno(-fd, StrCat("open ", EscapeForTerminal(parent))));
  return Fd(fd);
}

struct CloseDir {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

Result<std::vector<std::string>> ListFd(int directory) {
  // An own open file description: the position of ours stays at the start.
  Fd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return std::unexpected(Error::FromErrno(errno, "open directory"));
  const std::unique_ptr<DIR, CloseDir> stream(::fdopendir(own.get()));
  if (!stream) return std::unexpected(Error::FromErrno(errno, "fdopendir"));
  (void)own.Release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return std::unexpected(Error::FromErrno(errno, "readdir"));
  return names;
}

// Removes a tree that somebody may have made to be hard to remove: directories without permission,
// more levels than there are descriptors.
class TreeRemoval {
 public:
  explicit TreeRemoval(dev_t device) : device_(device) {}

  Status Remove(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return std::unexpected(Failed("unlink", name));
    SOMA_ASSIGN(const Fd top, OpenToEmpty(parent, name));
    top_ = top.get();
    do {
      moved_ = false;
      SOMA_TRY(Empty(top_, 1));
    } while (moved_);
    return RemoveEmpty(parent, name);
  }

 private:
  // Whoever owns a directory may open it again, whatever its mode is now.
  Result<Fd> OpenToEmpty(int parent, const std::string& name) const {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    Fd directory(::openat(parent, name.c_str(), kFlags));
    if (!directory && errno == EACCES) {
      (void)::fchmodat(parent, name.c_str(), S_IRWXU, AT_SYMLINK_NOFOLLOW);
      directory = Fd(::openat(parent, name.c_str(), kFlags));
    }
    if (!directory) return std::unexpected(Failed("open", name));
    struct stat seen{};
    if (::fstat(directory.get(), &seen) != 0) return std::unexpected(Failed("stat", name));
    if (seen.st_dev != device_) {
      return Fail(Errc::kFailedPrecondition, "remove: another file system");
    }
    if ((seen.st_mode & S_IRWXU) != S_IRWXU) (void)::fchmod(directory.get(), S_IRWXU);
    return directory;
  }

  Status Empty(int directory, int depth) {
    SOMA_ASSIGN(const auto names, ListFd(directory));
    Status first;
    for (const std::string& name : names) {
      Status removed = RemoveBelow(directory, name, depth);
      if (!removed && first) first = std::move(removed);
    }
    return first;
  }

  Status RemoveBelow(int directory, const std::string& name, int depth) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return std::unexpected(Failed("unlink", name));
    if (depth >= kDepthMax) return MoveUp(directory, name);
    {
      SOMA_ASSIGN(const Fd below, OpenToEmpty(directory, name));
      SOMA_TRY(Empty(below.get(), depth + 1));
    }
    return RemoveEmpty(directory, name);
  }

  // Depth becomes breadth, so neither the stack nor the number of descriptors grows with it.
  Status MoveUp(int directory, const std::string& name) {
    for (;;) {
      const std::string fresh = StrCat(".soma-removed-", ++moves_);
      if (::renameat2(directory, name.c_str(), top_, fresh.c_str(), RENAME_NOREPLACE) == 0) break;
      // A file system that can't promise it; nobody else makes such names.
      if (errno == EINVAL && ::renameat(directory, name.c_str(), top_, fresh.c_str()) == 0) break;
      if (errno != EEXIST) return std::unexpected(Failed("rename", name));
    }
    moved_ = true;
    return {};
  }

  static Status RemoveEmpty(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    return std::unexpected(Failed("rmdir", name));
  }

  dev_t device_;
  int top_ = -1;
  std::uint64_t moves_ = 0;
  bool moved_ = false;  // something into the top, which has to be gone over again
};

}  // namespace

Result<RelPath> RelPath::Parse(std::string_view text) {
  const auto bad = [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  };
  if (text.empty() || text.size() > 4095 || text.find('\0') != std::string_view::npos ||
      std::ranges::any_of(Split(text, '/'), bad)) {
    return Fail(Errc::kInvalidArgument, StrCat("not a relative path: ", EscapeForTerminal(text)));
  }
  return RelPath(std::string(text));
}

std::string_view RelPath::name() const {
  const auto slash = text_.rfind('/');
  return slash == std::string::npos ? std::string_view(text_)
                                    : std::string_view(text_).substr(slash + 1);
}

int OpenBeneath(int directory, const char* path, int flags, unsigned mode,
                unsigned resolve) noexcept {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  // The kernel refuses a mode where nothing is made; O_TMPFILE has the bit of O_DIRECTORY in it.
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  how.mode = makes ? mode : 0;
  how.resolve = resolve;
  constexpr int kTriesMax = 64;
  for (int i = 0; i < kTriesMax; ++i) {
    const auto fd = static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
    if (fd >= 0) return fd;
    if (errno == ENOSYS && resolve == kBeneath) {
      return OpenStepByStep(directory, path, flags, mode);
    }
    if (errno != EAGAIN && errno != EINTR) return -errno;
  }
  return -EAGAIN;
}

Result<Dir> Dir::OpenAbsolute(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return std::unexpected(Failed("open", path));
  return Dir(std::move(fd));
}

Result<Fd> Dir::Open(const RelPath& path, int flags, unsigned mode) const {
  const int fd = OpenBeneath(fd_.get(), path.c_str(), flags | O_NOFOLLOW, mode, kBeneath);
  if (fd < 0) {
    return std::unexpected(Error::FromErrno(-fd, StrCat("open ", EscapeForTerminal(path.text()))));
  }
  return Fd(fd);
}

Result<Dir> Dir::OpenDir(const RelPath& path) const {
  SOMA_ASSIGN(auto fd, Open(path, O_RDONLY | O_DIRECTORY));
  return Dir(std::move(fd));
}

Status Dir::MakeDir(const RelPath& path, unsigned mode) const {
  SOMA_ASSIGN(const auto parent, OpenParent(fd_.get(), path));
  const std::string name(path.name());
  if (::mkdirat(parent.get(), name.c_str(), mode) != 0 && errno != EEXIST) {
    return std::unexpected(Failed("mkdir", path.text()));
  }
  return {};
}

Result<struct stat> Dir::Stat(const RelPath& path) const {
  SOMA_ASSIGN(const auto parent, OpenParent(fd_.get(), path));
  const std::string name(path.name());
  struct stat seen{};
  if (::fstatat(parent.get(), name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
    return std::unexpected(Failed("stat", path.text()));
  }
  return seen;
}

Status Dir::Remove(const RelPath& path) const {
  auto parent = OpenParent(fd_.get(), path);
  if (!parent) {
    if (parent.error().errno_value() == ENOENT) return {};
    return std::unexpected(std::move(parent).error());
  }
  const std::string name(path.name());
  if (::unlinkat(parent->get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno == EISDIR && ::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  return std::unexpected(Failed("remove", path.text()));
}

Status Dir::RemoveTree(const RelPath& path) const {
  auto parent = OpenParent(fd_.get(), path);
  if (!parent) {
    if (parent.error().errno_value() == ENOENT) return {};
    return std::unexpected(std::move(parent).error());
  }
  struct stat seen{};
  if (::fstat(fd_.get(), &seen) != 0) return std::unexpected(Failed("stat", "directory"));
  return TreeRemoval(seen.st_dev).Remove(parent->get(), std::string(path.name()));
}

Result<std::vector<std::string>> Dir::List() const { return ListFd(fd_.get()); }

Status RemoveTreeAt(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  SOMA_ASSIGN(const Dir parent, Dir::OpenAbsolute(slash == 0 ? "/" : path.substr(0, slash)));
  SOMA_ASSIGN(const RelPath name, RelPath::Parse(path.substr(slash + 1)));
  return parent.RemoveTree(name);
}

}  // namespace soma::sys
