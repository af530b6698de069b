// SPDX-License-Identifier: Apache-2.0
#include "front/private_place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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
