// SPDX-License-Identifier: Apache-2.0
// Judge: says whether a call that waits in the supervisor may go on. `front` and `monitor`
// implement it; this room only asks.
//
// What a Request holds was read from another process's memory, which may change at any time. So an
// "allow" never opens anything: the call continues and meets the walls, which stay authoritative. A
// "deny" is exact by construction, because the call isn't executed.
#ifndef SOMA_WALLS_JUDGE_H_
#define SOMA_WALLS_JUDGE_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace soma::walls {

enum class RequestKind : std::uint8_t {
  kOpenWrite,  // open with any intent to write: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE
  kCreate,     // mkdir, mknod
  kSymlink,    // `path` is the new link, `other` the text it points to
  kLink,       // `path` is the new name, `other` the existing file
  kRename,     // `path` is the new name, `other` the old one
  kRemove,     // unlink, rmdir
  kTruncate,
  kSetAttributes,  // chmod, chown, utimes, set and remove extended attributes
  kExecute,        // execve, execveat; asked only for an existing file
  kConnect,
  kBind,
};
std::string_view RequestKindName(RequestKind kind);

// A path argument, in the task's own view of the file tree.
struct RequestPath {
  std::string asked;     // as written by the program
  std::string absolute;  // joined with the directory it is relative to, "." and ".." and "//"
                         // removed lexically; what a person would call it
  // The object: symlinks resolved within the task's root, the last component too if the call would
  // follow it. For what doesn't exist yet: the resolved parent and the name. Empty when it can't be
  // resolved (the parent is missing, or not for our eyes).
  std::string real;
  bool exists = false;
};

// A socket address. Unix sockets in the file tree are a path; others are text and port.
struct RequestAddress {
  int family = 0;                   // AF_*
  std::string host;                 // "192.0.2.1", "2001:db8::1", or "@name" for an abstract socket
  std::uint16_t port = 0;           // INET and INET6
  std::optional<RequestPath> path;  // AF_UNIX with a path
};

struct Request {
  RequestKind kind = RequestKind::kOpenWrite;
  pid_t pid = 0;            // in the supervisor's pid namespace
  std::string command;      // the thread's name, escaped
  int call_number = 0;      // x86-64's
  std::uint64_t flags = 0;  // open flags, rename flags …, as passed; 0 where a call has none
  RequestPath path;         // for connect and bind: unused
  RequestPath other;        // kSymlink, kLink, kRename only
  RequestAddress address;   // kConnect, kBind only
};

struct Verdict {
  bool allowed = true;
  int errno_value = 0;  // what the program gets when refused: EACCES, EPERM, EROFS, ECONNREFUSED …
  std::string rule;     // for the report
  std::string remedy;

  static Verdict Allow() { return {}; }
  static Verdict Deny(int errno_value, std::string rule, std::string remedy) {
    return {.allowed = false,
            .errno_value = errno_value,
            .rule = std::move(rule),
            .remedy = std::move(remedy)};
  }
};

class Judge {
 public:
  virtual ~Judge() = default;
  // Called by the supervisor's thread, while the program sleeps in its call: must be quick (a few
  // microseconds) and must not wait for anybody.
  virtual Verdict Decide(const Request& request) = 0;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_JUDGE_H_
