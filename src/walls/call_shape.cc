// SPDX-License-Identifier: Apache-2.0
#include "walls/call_shape.h"

#include <sys/syscall.h>

#include "walls/judge.h"

namespace soma::walls {
namespace {

using enum RequestKind;
using enum LastLink;

// Not in Debian 12's headers; source: syscall_64.tbl of Linux 6.18.
constexpr int kFchmodat2 = 452;
constexpr int kSetxattrat = 463;
constexpr int kRemovexattrat = 466;

// openat2's flags lie behind a pointer, so its row names none: the supervisor reads them.
constexpr CallShape kShapes[] = {
    {.number = SYS_open, .kind = kOpenWrite, .path = 0, .flags = 1, .last = kOpenFlags},
    {.number = SYS_openat,
     .kind = kOpenWrite,
     .path = 1,
     .directory = 0,
     .flags = 2,
     .last = kOpenFlags},
    {.number = SYS_openat2, .kind = kOpenWrite, .path = 1, .directory = 0, .last = kOpenFlags},
    {.number = SYS_creat, .kind = kOpenWrite, .path = 0, .last = kFollow},
    {.number = SYS_truncate, .kind = kTruncate, .path = 0, .last = kFollow},
    {.number = SYS_mkdir, .kind = kCreate, .path = 0},
    {.number = SYS_mkdirat, .kind = kCreate, .path = 1, .directory = 0},
    {.number = SYS_mknod, .kind = kCreate, .path = 0},
    {.number = SYS_mknodat, .kind = kCreate, .path = 1, .directory = 0},
    {.number = SYS_rmdir, .kind = kRemove, .path = 0},
    {.number = SYS_unlink, .kind = kRemove, .path = 0},
    {.number = SYS_unlinkat, .kind = kRemove, .path = 1, .directory = 0, .flags = 2},
    {.number = SYS_rename, .kind = kRename, .path = 1, .other = 0},
    {.number = SYS_renameat,
     .kind = kRename,
     .path = 3,
     .directory = 2,
     .other = 1,
     .other_directory = 0},
    {.number = SYS_renameat2,
     .kind = kRename,
     .path = 3,
     .directory = 2,
     .other = 1,
     .other_directory = 0,
     .flags = 4},
    {.number = SYS_link, .kind = kLink, .path = 1, .other = 0},
    {.number = SYS_linkat,
     .kind = kLink,
     .path = 3,
     .directory = 2,
     .other = 1,
     .other_directory = 0,
     .flags = 4,
     .other_last = kIfFollow},
    {.number = SYS_symlink, .kind = kSymlink, .path = 1, .other = 0},
    {.number = SYS_symlinkat, .kind = kSymlink, .path = 2, .directory = 1, .other = 0},
    {.number = SYS_chmod, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_fchmodat, .kind = kSetAttributes, .path = 1, .directory = 0, .last = kFollow},
    {.number = kFchmodat2,
     .kind = kSetAttributes,
     .path = 1,
     .directory = 0,
     .flags = 3,
     .last = kUnlessNoFollow},
    {.number = SYS_chown, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_lchown, .kind = kSetAttributes, .path = 0},
    {.number = SYS_fchownat,
     .kind = kSetAttributes,
     .path = 1,
     .directory = 0,
     .flags = 4,
     .last = kUnlessNoFollow},
    {.number = SYS_utime, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_utimes, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_futimesat, .kind = kSetAttributes, .path = 1, .directory = 0, .last = kFollow},
    {.number = SYS_utimensat,
     .kind = kSetAttributes,
     .path = 1,
     .directory = 0,
     .flags = 3,
     .last = kUnlessNoFollow},
    {.number = SYS_setxattr, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_lsetxattr, .kind = kSetAttributes, .path = 0},
    {.number = SYS_removexattr, .kind = kSetAttributes, .path = 0, .last = kFollow},
    {.number = SYS_lremovexattr, .kind = kSetAttributes, .path = 0},
    {.number = kSetxattrat,
     .kind = kSetAttributes,
     .path = 1,
     .directory = 0,
     .flags = 2,
     .last = kUnlessNoFollow},
    {.number = kRemovexattrat,
     .kind = kSetAttributes,
     .path = 1,
     .directory = 0,
     .flags = 2,
     .last = kUnlessNoFollow},
    {.number = SYS_execve, .kind = kExecute, .path = 0, .last = kFollow},
    {.number = SYS_execveat,
     .kind = kExecute,
     .path = 1,
     .directory = 0,
     .flags = 4,
     .last = kUnlessNoFollow},
    {.number = SYS_connect, .kind = kConnect},
    {.number = SYS_bind, .kind = kBind},
};

}  // namespace

const CallShape* FindCallShape(int number) {
  for (const CallShape& shape : kShapes) {
    if (shape.number == number) return &shape;
  }
  return nullptr;
}

}  // namespace soma::walls
