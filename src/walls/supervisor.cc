// SPDX-License-Identifier: Apache-2.0
#include "walls/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/seccomp.h"
#include "walls/call_shape.h"
#include "walls/denied.h"
#include "walls/judge.h"
#include "walls/socket_address.h"
#include "walls/task_view.h"

namespace soma::walls {
namespace {

// The kernel sees these arguments as int, whatever the upper half of the register holds.
int AsInt(std::uint64_t argument) { return static_cast<int>(static_cast<std::uint32_t>(argument)); }

bool FollowsLast(LastLink last, std::uint64_t flags) {
  switch (last) {
    case LastLink::kFollow:
      return true;
    case LastLink::kKeep:
      return false;
    case LastLink::kOpenFlags:
      return (flags & O_NOFOLLOW) == 0 && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    case LastLink::kUnlessNoFollow:
      return (flags & AT_SYMLINK_NOFOLLOW) == 0;
    case LastLink::kIfFollow:
      return (flags & AT_SYMLINK_FOLLOW) != 0;
  }
  return false;
}

// Turns one notification into a Request. Nothing comes out when the call needs no verdict: it can't
// succeed (unreadable pointers), changes nothing, or is a shape that we don't know.
class Reader {
 public:
  explicit Reader(const seccomp_notif& notification)
      : data_(notification.data), view_(static_cast<pid_t>(notification.pid)) {
    request_.pid = static_cast<pid_t>(notification.pid);
    request_.call_number = data_.nr;
  }

  std::optional<Request> Read() {
    const CallShape* shape = FindCallShape(data_.nr);
    if (shape == nullptr) return std::nullopt;
    request_.kind = shape->kind;
    const bool wanted = shape->path < 0 ? ReadAddress() : ReadPaths(*shape);
    if (!wanted) return std::nullopt;
    request_.command = view_.CommandName();
    return std::move(request_);
  }

 private:
  std::uint64_t Argument(int index) const { return data_.args[static_cast<std::size_t>(index)]; }
  int Directory(int index) const { return index < 0 ? AT_FDCWD : AsInt(Argument(index)); }

  bool ReadFlags(const CallShape& shape) {
    if (data_.nr == SYS_openat2) {
      // struct open_how begins with the 64-bit flags; argument 2 points to it.
      const auto bytes = view_.ReadBytes(Argument(2), sizeof request_.flags);
      if (!bytes) return false;
      std::memcpy(&request_.flags, bytes->data(), sizeof request_.flags);
    } else if (shape.flags >= 0) {
      request_.flags = static_cast<std::uint32_t>(Argument(shape.flags));
    } else if (data_.nr == SYS_creat) {
      request_.flags = O_CREAT | O_WRONLY | O_TRUNC;
    }
    if (shape.kind != RequestKind::kOpenWrite) return true;
    // An O_PATH descriptor writes nothing, and openat2 notifies of reads too.
    constexpr std::uint64_t kWriteIntent =
        O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    return (request_.flags & O_PATH) == 0 && (request_.flags & kWriteIntent) != 0;
  }

  bool ReadPaths(const CallShape& shape) {
    if (!ReadFlags(shape)) return false;
    const auto path = view_.ReadPath(Argument(shape.path));
    if (!path) return false;
    request_.path =
        view_.Resolve(Directory(shape.directory), *path, FollowsLast(shape.last, request_.flags));
    if (shape.other >= 0) {
      const auto other = view_.ReadPath(Argument(shape.other));
      if (!other) return false;
      if (shape.kind == RequestKind::kSymlink) {
        request_.other.asked = *other;  // any text, nothing is looked up
      } else {
        request_.other = view_.Resolve(Directory(shape.other_directory), *other,
                                       FollowsLast(shape.other_last, request_.flags));
      }
    }
    // A PATH search executes ten names that don't exist; refusing these would be noise.
    return shape.kind != RequestKind::kExecute || request_.path.exists;
  }

  bool ReadAddress() {
    const std::uint64_t size = static_cast<std::uint32_t>(Argument(2));
    if (size > kSocketAddressBytesMax) return false;
    const auto bytes = view_.ReadBytes(Argument(1), static_cast<std::size_t>(size));
    if (!bytes) return false;
    auto address = DecodeSocketAddress(*bytes);
    if (!address) return false;
    if (address->path) address->path = view_.Resolve(AT_FDCWD, address->path->asked, true);
    request_.address = std::move(*address);
    return true;
  }

  const seccomp_data& data_;
  TaskView view_;
  Request request_;
};

std::string Safe(std::string_view foreign) {
  std::string text = EscapeForTerminal(foreign);
  if (text.size() > kDeniedTextBytesMax) {
    text.resize(kDeniedTextBytesMax);
    text += "...";
  }
  return text;
}

std::string_view BestName(const RequestPath& path) {
  if (!path.real.empty()) return path.real;
  return path.absolute.empty() ? path.asked : path.absolute;
}

Denied Describe(const Request& request, const Verdict& verdict, WallTime now) {
  Denied event{.when = now, .pid = request.pid, .command = request.command};
  event.tried = RequestKindName(request.kind);
  if (request.kind == RequestKind::kConnect || request.kind == RequestKind::kBind) {
    event.asked = Safe(AddressText(request.address));
    event.object = request.address.path ? Safe(BestName(*request.address.path)) : event.asked;
  } else {
    event.asked = Safe(request.path.asked);
    event.object = Safe(BestName(request.path));
    if (!request.other.asked.empty()) {
      event.asked += StrCat(" (with ", Safe(request.other.asked), ")");
    }
  }
  event.rule = Safe(verdict.rule);
  event.remedy = Safe(verdict.remedy);
  event.errno_value = verdict.errno_value;
  return event;
}

bool AllTasksAreGone(const Fd& listener) {
  pollfd poll{.fd = listener.get(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & (POLLHUP | POLLNVAL)) != 0;
}

}  // namespace

Supervisor::Supervisor(Fd listener, Judge& judge, Clock& clock)
    : listener_(std::move(listener)), judge_(judge), clock_(clock) {}

bool Supervisor::ServeOne() {
  seccomp_notif notification{};
  const int error = sys::ReceiveNotification(listener_, notification);
  if (error == EINTR) return true;
  if (error == ENOENT) return !AllTasksAreGone(listener_);
  if (error != 0) return false;
  ++served_;
  const auto request = Reader(notification).Read();
  // Valid now means that the thread slept in its call all the time, so what was read was its own.
  if (!sys::NotificationIsValid(listener_, notification.id)) return true;
  if (!request) {
    sys::ContinueCall(listener_, notification.id);
    return true;
  }
  Answer(notification.id, judge_.Decide(*request), *request);
  return true;
}

void Supervisor::Answer(std::uint64_t id, const Verdict& verdict, const Request& request) {
  if (verdict.allowed) {
    sys::ContinueCall(listener_, id);
    return;
  }
  // A refusal without an errno would look like success to the program.
  const int errno_value = verdict.errno_value > 0 ? verdict.errno_value : EACCES;
  if (sys::RefuseCall(listener_, id, errno_value) != 0) return;  // the caller is gone
  Denied event = Describe(request, verdict, clock_.Now());
  event.errno_value = errno_value;
  denied_.Push(std::move(event));
}

}  // namespace soma::walls
