// SPDX-License-Identifier: Apache-2.0
#include "front/private_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <expected>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::front {

namespace {

// Making one directory and looking through a few takes microseconds.
constexpr std::chrono::seconds kPatience{10};

std::string ParentPath(const std::string& state) { return state + "/places"; }

void Remove(const sys::Dir& parent, const std::string& name) {
  if (const auto path = sys::RelPath::Parse(name)) (void)parent.RemoveTree(*path);
}

// Those whose lock is free belong to nobody any more.
void RemoveAbandoned(const sys::Dir& parent, const std::string& path) {
  const auto names = parent.List();
  if (!names) return;
  for (const std::string& name : *names) {
    const auto place = sys::OpenFile(StrCat(path, "/", name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!place) continue;
    const auto locked = sys::TryLock(*place, sys::LockKind::kExclusive);
    if (locked && *locked) Remove(parent, name);
  }
}

Status MakeOwned(const std::string& path, const PrivatePlace::Owner& owner) {
  if (mkdir(path.c_str(), 0700) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("mkdir ", EscapeForTerminal(path))));
  }
  if (owner.uid != geteuid() && lchown(path.c_str(), owner.uid, owner.gid) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("chown ", EscapeForTerminal(path))));
  }
  return {};
}

// Root's state is for root alone. Whom it starts the command as may pass through it to what is its
// own, and see no name there.
Status LetPass(const std::string& path, const PrivatePlace::Owner& owner) {
  for (std::size_t end = path.size(); end != 0 && end != std::string::npos;
       end = path.rfind('/', end - 1)) {
    const std::string above = path.substr(0, end);
    struct stat info{};
    if (stat(above.c_str(), &info) != 0) {
      return std::unexpected(Error::FromErrno(errno, StrCat("stat ", EscapeForTerminal(above))));
    }
    if ((info.st_mode & S_IXOTH) != 0 || info.st_uid == owner.uid) continue;
    // The state directory and `places` are ours to open; what lies above is somebody's decision.
    const bool ours = end == path.size() || end == path.rfind('/');
    if (ours && info.st_uid == geteuid() &&
        chmod(above.c_str(), (info.st_mode | S_IXGRP | S_IXOTH) & ALLPERMS) == 0) {
      continue;
    }
    return Fail(
        Errc::kPermissionDenied,
        StrCat("the command runs as user ", owner.uid, ", who can't pass through ",
               EscapeForTerminal(above), " to its private directory: chmod o+x it, or name ",
               "another state directory by SOMA_STATE_DIR"));
  }
  return {};
}

}  // namespace

std::string PrivatePlacePath(const std::string& state, const std::string& name) {
  return StrCat(ParentPath(state), "/", name);
}

PrivatePlace::~PrivatePlace() {
  if (!lock_) return;
  if (const auto parent = sys::Dir::OpenAbsolute(parent_)) Remove(*parent, name_);
}

Result<PrivatePlace> PrivatePlace::Create(const std::string& state, const std::string& name,
                                          const Owner& owner) {
  const std::string parent = ParentPath(state);
  const std::string path = PrivatePlacePath(state, name);
  SOMA_TRY(sys::MakeDirectories(parent, 0700));
  if (owner.uid != geteuid()) SOMA_TRY(LetPass(parent, owner));
  SOMA_ASSIGN(const Fd gate, sys::OpenFile(parent, O_RDONLY | O_DIRECTORY));
  // A new directory is nobody's until its lock is taken, so one run at a time is in here.
  SOMA_TRY(sys::LockWithin(gate, sys::LockKind::kExclusive, kPatience));
  SOMA_ASSIGN(const sys::Dir directory, sys::Dir::OpenAbsolute(parent));
  RemoveAbandoned(directory, parent);
  SOMA_TRY(MakeOwned(path, owner));
  SOMA_ASSIGN(Fd lock, sys::OpenFile(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  SOMA_ASSIGN(const bool locked, sys::TryLock(lock, sys::LockKind::kExclusive));
  if (!locked) return Fail(Errc::kInternal, StrCat("somebody has taken ", path));
  PrivatePlace place(parent, name, std::move(lock));
  for (const char* inside : {"/tmp", "/home"}) SOMA_TRY(MakeOwned(path + inside, owner));
  return place;
}

}  // namespace soma::front
