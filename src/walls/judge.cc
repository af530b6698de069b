// SPDX-License-Identifier: Apache-2.0
#include "walls/judge.h"

#include <string_view>

namespace soma::walls {

std::string_view RequestKindName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kOpenWrite:
      return "open for writing";
    case RequestKind::kCreate:
      return "create";
    case RequestKind::kSymlink:
      return "make a symbolic link";
    case RequestKind::kLink:
      return "link";
    case RequestKind::kRename:
      return "rename";
    case RequestKind::kRemove:
      return "remove";
    case RequestKind::kTruncate:
      return "truncate";
    case RequestKind::kSetAttributes:
      return "change attributes";
    case RequestKind::kExecute:
      return "execute";
    case RequestKind::kConnect:
      return "connect";
    case RequestKind::kBind:
      return "bind";
  }
  return "unknown";
}

}  // namespace soma::walls
