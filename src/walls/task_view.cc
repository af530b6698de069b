// SPDX-License-Identifier: Apache-2.0
#include "walls/task_view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/text.h"
#include "sys/directory.h"
#include "sys/fd.h"
#include "walls/judge.h"
#include "walls/lexical_path.h"

namespace soma::walls {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
// The kernel gives up after 40 links (linux/namei.h MAXSYMLINKS); for dangling ones fewer do.
constexpr int kDanglingLinksMax = 8;

// Bytes read into `out`, 0 when nothing is readable there.
std::size_t ReadSome(pid_t tid, std::uint64_t address, void* out, std::size_t size) {
  const iovec local{.iov_base = out, .iov_len = size};
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = size};
  const ssize_t count = ::process_vm_readv(tid, &local, 1, &remote, 1, 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

std::string ReadLink(int directory, const char* path) {
  char text[PATH_MAX];
  const ssize_t size = ::readlinkat(directory, path, text, sizeof text);
  // A target that fills the buffer may be cut, so it counts as unknown.
  if (size <= 0 || static_cast<std::size_t>(size) >= sizeof text) return {};
  return {text, static_cast<std::size_t>(size)};
}

// The path that the kernel has for an open file, as seen from the root of its own mount namespace.
std::string PathOf(const Fd& fd) {
  return ReadLink(AT_FDCWD, StrCat("/proc/self/fd/", fd.get()).c_str());
}

// "/dev/fd/3", "/dev/stdout" and "/proc/self/fd/3" go through links that mean the reader. Gives the
// descriptor that the thread means.
std::optional<int> OwnDescriptor(std::string_view absolute) {
  if (absolute == "/dev/stdin") return 0;
  if (absolute == "/dev/stdout") return 1;
  if (absolute == "/dev/stderr") return 2;
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}) {
    if (absolute.starts_with(prefix)) return ParseInt<int>(absolute.substr(prefix.size()));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> TaskView::ReadBytes(std::uint64_t address, std::size_t size) const {
  Bytes bytes(size);
  if (ReadSome(tid_, address, bytes.data(), size) != size) return std::nullopt;
  return bytes;
}

std::optional<std::string> TaskView::ReadPath(std::uint64_t address) const {
  std::string path;
  char page[kPageBytes];
  while (path.size() < PATH_MAX) {
    // Never across a page's end: the next page may not be mapped.
    const std::size_t to_page_end = kPageBytes - (address % kPageBytes);
    const std::size_t wanted = std::min<std::size_t>(to_page_end, PATH_MAX - path.size());
    const std::size_t count = ReadSome(tid_, address, page, wanted);
    if (count == 0) return std::nullopt;
    const std::string_view piece(page, count);
    const std::size_t nul = piece.find('\0');
    path += piece.substr(0, nul);
    if (nul != std::string_view::npos) return path;
    address += count;
  }
  return std::nullopt;
}

std::string TaskView::CommandName() const {
  const Fd file(::open(ProcLink("comm").c_str(), O_RDONLY | O_CLOEXEC));
  char name[64];
  const ssize_t size = file ? ::read(file.get(), name, sizeof name) : 0;
  if (size <= 0) return {};
  std::string_view text(name, static_cast<std::size_t>(size));
  if (text.ends_with('\n')) text.remove_suffix(1);
  return EscapeForTerminal(text);
}

RequestPath TaskView::Resolve(int directory, std::string_view asked, bool follow_last) const {
  RequestPath path{.asked = std::string(asked)};
  std::string base;
  if (!asked.starts_with('/')) {
    base = ReadLink(AT_FDCWD, directory == AT_FDCWD ? ProcLink("cwd").c_str()
                                                    : ProcLink(StrCat("fd/", directory)).c_str());
    if (asked.empty()) {  // the descriptor itself
      path.absolute = base;
      path.real = base;
      path.exists = !base.empty();
      return path;
    }
    if (!base.starts_with('/')) return path;  // gone, or not a file
  }
  // After a chroot the thread's "/" is not that of its mount namespace, which PathOf speaks of.
  std::string root = ReadLink(AT_FDCWD, ProcLink("root").c_str());
  if (root == "/") root.clear();
  if (asked.starts_with('/')) base = root;
  path.absolute = JoinLexically("/", StrCat(base, '/', asked));
  if (const auto own = OwnDescriptor(path.absolute)) {
    path.real = ReadLink(AT_FDCWD, ProcLink(StrCat("fd/", *own)).c_str());
    path.exists = !path.real.empty();
    return path;
  }
  // Not the lexical form: "link/.." must be resolved as the kernel does it.
  std::string_view from_root = base;
  if (from_root.starts_with(root)) from_root.remove_prefix(root.size());
  FindReal(StrCat(from_root, '/', asked), follow_last, path);
  return path;
}

std::string TaskView::ProcLink(std::string_view name) const {
  return StrCat("/proc/", tid_, '/', name);
}

Fd TaskView::OpenInRoot(const std::string& path, bool follow_last) const {
  const Fd root(::open(ProcLink("root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Fd();
  const int flags = O_PATH | O_CLOEXEC | (follow_last ? 0 : O_NOFOLLOW);
  const int fd = sys::OpenBeneath(root.get(), path.c_str(), flags, 0, RESOLVE_IN_ROOT);
  if (fd < 0) errno = -fd;
  return fd >= 0 ? Fd(fd) : Fd();
}

void TaskView::FindReal(const std::string& from_root, bool follow_last, RequestPath& out) const {
  std::string path = from_root;
  for (int links = 0; links < kDanglingLinksMax; ++links) {
    if (const Fd file = OpenInRoot(path, follow_last)) {
      out.real = PathOf(file);
      out.exists = true;
      return;
    }
    if (errno != ENOENT) return;
    // It doesn't exist: the parent and the name say what would be made.
    const ParentAndName parts = SplitPath(path);
    const Fd parent = OpenInRoot(parts.parent.empty() ? "/" : parts.parent, true);
    if (!parent || parts.name.empty() || parts.name == "." || parts.name == "..") return;
    const std::string parent_path = PathOf(parent);
    const std::string target = ReadLink(parent.get(), parts.name.c_str());
    if (target.empty() || !follow_last) {
      out.real = JoinLexically(parent_path, parts.name);
      return;
    }
    // A dangling link: open(O_CREAT) makes what it points to.
    path = target.starts_with('/') ? target : StrCat(parent_path, '/', target);
  }
}

}  // namespace soma::walls
