// SPDX-License-Identifier: Apache-2.0
// What the arguments of each notified call mean. One row for every call that
// data/seccomp/notify.list names (a test holds both against each other).
#ifndef SOMA_WALLS_CALL_SHAPE_H_
#define SOMA_WALLS_CALL_SHAPE_H_

#include <cstdint>

#include "walls/judge.h"

namespace soma::walls {

// Does the call follow a symlink in the last component?
enum class LastLink : std::uint8_t {
  kFollow,
  kKeep,
  kOpenFlags,       // as O_NOFOLLOW and O_CREAT|O_EXCL in the flags say
  kUnlessNoFollow,  // AT_SYMLINK_NOFOLLOW in the flags keeps it
  kIfFollow,        // AT_SYMLINK_FOLLOW in the flags follows it
};

// Argument numbers; -1: the call has none.
struct CallShape {
  int number = 0;
  RequestKind kind = RequestKind::kOpenWrite;
  int path = -1;
  int directory = -1;  // the descriptor that `path` is relative to; -1: the working directory
  int other = -1;
  int other_directory = -1;
  int flags = -1;
  LastLink last = LastLink::kKeep;        // of `path`
  LastLink other_last = LastLink::kKeep;  // of `other`
};

// Null for a call that isn't known here.
const CallShape* FindCallShape(int number);

}  // namespace soma::walls

#endif  // SOMA_WALLS_CALL_SHAPE_H_
