// SPDX-License-Identifier: Apache-2.0
#include "guest/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <expected>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/paths.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::guest {
namespace {

constexpr mode_t kDirectoryMode = 0755;

// The kind of thing at a path, links followed; 0 for nothing.
mode_t KindAt(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & S_IFMT : 0;
}

Status MakeOne(const User& user, const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) != 0) {
    if (errno == EEXIST && KindAt(path) == S_IFDIR) return {};
    return std::unexpected(Error::FromErrno(errno, StrCat("making directory ", path)));
  }
  SOMA_ASSIGN(const Fd made, sys::OpenFile(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return GiveTo(user, made);
}

}  // namespace

Status GiveTo(const User& user, const Fd& file) {
  if (::geteuid() != 0) return {};
  if (::fchown(file.get(), user.uid, user.gid) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("giving a file to ", user.name)));
  }
  return {};
}

Status MakeDirectories(const User& user, const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const mode_t kind = KindAt(part);
    if (kind == 0) {
      SOMA_TRY(MakeOne(user, part));
    } else if (kind != S_IFDIR) {
      return Fail(Errc::kInvalidArgument, StrCat("path is not a directory: ", part));
    }
    if (slash == std::string::npos) return {};
  }
}

Status MakeDirectory(const User& user, const std::string& path) {
  const mode_t kind = KindAt(path);
  if (kind == S_IFDIR) {
    return Fail(Errc::kAlreadyExists, StrCat("directory already exists: ", path));
  }
  if (kind != 0) {
    return Fail(Errc::kInvalidArgument,
                StrCat("path already exists but is not a directory: ", path));
  }
  return MakeDirectories(user, path);
}

Status MoveEntry(const User& user, const std::string& source, const std::string& destination) {
  struct stat status{};
  if (::lstat(source.c_str(), &status) != 0) {
    if (errno == ENOENT) return Fail(Errc::kNotFound, StrCat("source file not found: ", source));
    return std::unexpected(Error::FromErrno(errno, source));
  }
  SOMA_TRY(MakeDirectories(user, ParentOf(destination)));
  if (::rename(source.c_str(), destination.c_str()) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("moving ", source, " to ", destination)));
  }
  return {};
}

Status RemoveEntry(const std::string& path) {
  if (path == "/") return Fail(Errc::kInvalidArgument, "the root can't be removed");
  auto parent = sys::OpenFile(ParentOf(path), O_RDONLY | O_DIRECTORY);
  if (!parent) {
    const Errc code = parent.error().code();
    if (code == Errc::kNotFound || parent.error().errno_value() == ENOTDIR) return {};
    return std::unexpected(std::move(parent).error());
  }
  SOMA_ASSIGN(const sys::RelPath name, sys::RelPath::Parse(NameOf(path)));
  return sys::Dir(*std::move(parent)).RemoveTree(name);
}

}  // namespace soma::guest
