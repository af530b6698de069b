// SPDX-License-Identifier: Apache-2.0
// TaskView: what one sleeping thread of a sandbox refers to by an address, a path or a descriptor.
//
// Everything read here is foreign and may change while we read; all reads are bounded. Paths are
// looked up below the thread's own root (openat2 RESOLVE_IN_ROOT), with O_PATH only: nothing is
// opened for reading, no device or FIFO is touched, and a symlink can't lead out.
// Needs what ptrace(2) calls PTRACE_MODE_READ over the thread: the same user, or being the one who
// made its user namespace.
#ifndef SOMA_WALLS_TASK_VIEW_H_
#define SOMA_WALLS_TASK_VIEW_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "sys/fd.h"
#include "walls/judge.h"

namespace soma::walls {

class TaskView {
 public:
  // `tid` in our pid namespace.
  explicit TaskView(pid_t tid) : tid_(tid) {}

  // Exactly `size` bytes, or nothing.
  std::optional<Bytes> ReadBytes(std::uint64_t address, std::size_t size) const;
  // Up to the first NUL; nothing when it isn't readable, or has no NUL within PATH_MAX bytes (the
  // kernel then answers the call with an error of its own).
  std::optional<std::string> ReadPath(std::uint64_t address) const;

  // The thread's name, escaped; empty when it is gone.
  std::string CommandName() const;

  // `directory` is a descriptor of the thread or AT_FDCWD. An empty path means the descriptor
  // itself (AT_EMPTY_PATH). `follow_last`: the call follows a symlink in the last component.
  RequestPath Resolve(int directory, std::string_view asked, bool follow_last) const;

 private:
  std::string ProcLink(std::string_view name) const;
  Fd OpenInRoot(const std::string& path, bool follow_last) const;
  void FindReal(const std::string& from_root, bool follow_last, RequestPath& out) const;

  pid_t tid_;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_TASK_VIEW_H_
