// SPDX-License-Identifier: Apache-2.0
#include "audit/open_in.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {
namespace {

Result<sys::Dir> OpenTop(const std::string& directory) {
  SOMA_ASSIGN(Fd top, sys::OpenFile(directory, O_RDONLY | O_DIRECTORY));
  return sys::Dir(std::move(top));
}

Result<sys::RelPath> Below(const std::string& directory, const std::string& path) {
  SOMA_CHECK(path.starts_with(directory) && path.size() > directory.size() + 1);
  return sys::RelPath::Parse(path.substr(directory.size() + 1));
}

Status GiveToOwner(const sys::Dir& top, const Fd& opened) {
  struct stat owner{};
  struct stat own{};
  if (::fstat(top.fd().get(), &owner) != 0 || ::fstat(opened.get(), &own) != 0) {
    return std::unexpected(Error::FromErrno(errno, "fstat in the journal"));
  }
  const bool folder = S_ISDIR(own.st_mode);
  if (!folder && !S_ISREG(own.st_mode)) {
    return Fail(Errc::kFailedPrecondition, "something in the journal is no file");
  }
  // Only what nobody else has a name for: with a second name it would be somebody's file.
  const bool ours = ::geteuid() == 0 && own.st_uid == 0 && (folder || own.st_nlink == 1);
  if (!ours || owner.st_uid == 0) return {};
  if (::fchown(opened.get(), owner.st_uid, owner.st_gid) != 0) {
    return std::unexpected(Error::FromErrno(errno, "chown in the journal"));
  }
  return {};
}

}  // namespace

Result<Fd> OpenIn(const std::string& directory, const std::string& path, int flags) {
  SOMA_ASSIGN(const sys::Dir top, OpenTop(directory));
  SOMA_ASSIGN(const sys::RelPath relative, Below(directory, path));
  // Not to wait at a FIFO that lies there; on files it means nothing.
  SOMA_ASSIGN(Fd file, top.Open(relative, flags | O_NOCTTY | O_NONBLOCK));
  SOMA_TRY(GiveToOwner(top, file));
  return file;
}

Status MakeFolderIn(const std::string& directory, const std::string& path) {
  SOMA_ASSIGN(const sys::Dir top, OpenTop(directory));
  SOMA_ASSIGN(const sys::RelPath whole, Below(directory, path));
  for (std::size_t end = 0; end != std::string::npos;) {
    end = whole.text().find('/', end + 1);
    SOMA_ASSIGN(const sys::RelPath part, sys::RelPath::Parse(whole.text().substr(0, end)));
    SOMA_TRY(top.MakeDir(part, 0700));
    SOMA_ASSIGN(const Fd folder, top.Open(part, O_RDONLY | O_DIRECTORY));
    SOMA_TRY(GiveToOwner(top, folder));
  }
  return {};
}

}  // namespace soma::audit
