// SPDX-License-Identifier: Apache-2.0
// The unprivileged user that reads foreign bytes where root starts us: soma-server, the egress
// broker and the attendant of a run (sandbox/foreground_run.h) become it before they read any of a
// sandbox's or a client's. What root's own commands read themselves (policy files, the command
// line, an image that is to be imported, the journal) is not among that. It needs no account: like
// a sandbox's ids it is a number that nobody gives out (launcher/ids.h has the ranges and checks
// that they are apart).
#ifndef SOMA_SYS_SERVICE_USER_H_
#define SOMA_SYS_SERVICE_USER_H_

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace soma::sys {

inline constexpr uid_t kServiceUser = 0x78010000;

// Root, in a user namespace that has kServiceUser: root of a rootless container has a few ids only,
// and is treated as an ordinary user below.
bool HasServiceUser();

// With HasServiceUser: every id becomes kServiceUser, supplementary groups go. Anybody: no
// capability in any set, no_new_privs, not dumpable and not traceable, a session keyring of its
// own. For ever, and before the first thread.
Status BecomeServiceUser();

// Makes `path` (and its parents) with mode 0700. With HasServiceUser it becomes a directory of that
// user, who may then pass through the parent where that is root's own; what lay in `path` as root's
// is given away too. kFailedPrecondition when `path` is somebody else's.
Status MakeServiceDirectory(const std::string& path);

// While it lives, files are opened and made as the service's user, with HasServiceUser: a
// directory of that user could hold links to what only root may write. Single-threaded callers.
class ActAsServiceUser {
 public:
  static Result<ActAsServiceUser> Begin();
  ~ActAsServiceUser();
  ActAsServiceUser(ActAsServiceUser&& other) noexcept : active_(other.active_) {
    other.active_ = false;
  }
  ActAsServiceUser(const ActAsServiceUser&) = delete;
  ActAsServiceUser& operator=(const ActAsServiceUser&) = delete;
  ActAsServiceUser& operator=(ActAsServiceUser&&) = delete;

 private:
  explicit ActAsServiceUser(bool active) : active_(active) {}
  bool active_ = false;
};

// This process gets `signal` when its parent dies. kCancelled when `parent` isn't it any more. A
// later change of ids undoes it (prctl(2)), so after BecomeServiceUser.
Status EndWithParent(pid_t parent, int signal);

}  // namespace soma::sys

#endif  // SOMA_SYS_SERVICE_USER_H_
