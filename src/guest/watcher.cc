// SPDX-License-Identifier: Apache-2.0
#include "guest/watcher.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/directory_names.h"
#include "guest/loop.h"
#include "sys/fd.h"
#include "wire/record.h"
#include "wire/reply.h"
#include "wire/request.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

constexpr std::uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                  IN_ATTRIB | IN_ONLYDIR | IN_EXCL_UNLINK;
// Beyond this the kernel's queue has to hold what comes.
constexpr std::size_t kPendingMax = std::size_t{64} * 1024;

std::string Below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : StrCat(directory, "/", name);
}

// Upstream's watcher is fsnotify (Go): a move in is a creation, a move out a rename.
wire::FileEventKind KindOf(std::uint32_t mask) {
  if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return wire::FileEventKind::kCreate;
  if ((mask & IN_MODIFY) != 0) return wire::FileEventKind::kWrite;
  if ((mask & IN_DELETE) != 0) return wire::FileEventKind::kRemove;
  if ((mask & IN_MOVED_FROM) != 0) return wire::FileEventKind::kRename;
  return wire::FileEventKind::kChmod;
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::Open(Loop& loop, wire::Session& session,
                                               wire::ChannelId channel, const std::string& path,
                                               bool recursive) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return soma::Fail(Errc::kNotFound, StrCat("path not found: ", path));
    }
    return std::unexpected(Error::FromErrno(errno, path));
  }
  if (!S_ISDIR(status.st_mode)) {
    return soma::Fail(Errc::kInvalidArgument, StrCat("path is not a directory: ", path));
  }
  Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return std::unexpected(Error::FromErrno(errno, "inotify_init1"));
  std::unique_ptr<Watcher> watcher(
      new Watcher(session, channel, std::move(inotify), path, recursive));
  SOMA_TRY(recursive ? watcher->WatchTree("", false) : watcher->WatchOne(""));
  Watcher* const self = watcher.get();
  SOMA_ASSIGN(self->registration_,
              loop.Add(self->inotify_, EPOLLIN, [self](std::uint32_t) { self->OnReady(); }));
  self->Reply(wire::Opened{});
  return watcher;
}

Status Watcher::WatchOne(const std::string& relative) {
  if (directories_.size() >= kDirectoriesMax) {
    return soma::Fail(Errc::kResourceExhausted, StrCat("too many directories below ", root_));
  }
  const std::string path = relative.empty() ? root_ : StrCat(root_, "/", relative);
  // Links are followed at the root only.
  const std::uint32_t mask = kEvents | (relative.empty() ? 0U : std::uint32_t{IN_DONT_FOLLOW});
  const int watch = ::inotify_add_watch(inotify_.get(), path.c_str(), mask);
  if (watch < 0) return std::unexpected(Error::FromErrno(errno, StrCat("watching ", path)));
  directories_[watch] = relative;
  return {};
}

// The watch stands before the names are read, so nothing falls between; some is told twice.
Status Watcher::WatchTree(const std::string& relative, bool report) {
  std::vector<std::string> left = {relative};
  while (!left.empty()) {
    const std::string directory = std::move(left.back());
    left.pop_back();
    if (const auto watched = WatchOne(directory); !watched) {
      // Only the root has to be there; the rest may be gone again.
      const bool matters = directory.empty() || watched.error().code() == Errc::kResourceExhausted;
      if (matters) return watched;
      continue;
    }
    const auto names = SortedNames(directory.empty() ? root_ : StrCat(root_, "/", directory));
    if (!names) continue;
    for (const std::string& name : *names) {
      const std::string path = Below(directory, name);
      if (report) Tell(path, wire::FileEventKind::kCreate);
      struct stat status{};
      const bool is_directory =
          ::lstat(StrCat(root_, "/", path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
      if (is_directory) left.push_back(path);
    }
  }
  return {};
}

// It was moved away: what happens there is no longer below the root.
void Watcher::ForgetTree(const std::string& relative) {
  for (auto it = directories_.begin(); it != directories_.end();) {
    const bool below = it->second == relative || it->second.starts_with(StrCat(relative, "/"));
    if (below) static_cast<void>(::inotify_rm_watch(inotify_.get(), it->first));
    it = below ? directories_.erase(it) : std::next(it);
  }
}

void Watcher::OnReady() {
  alignas(inotify_event) std::array<char, std::size_t{16} * 1024> buffer;
  const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
  for (std::size_t at = 0; got > 0 && at < static_cast<std::size_t>(got);) {
    const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
    if (!OnEvent(*event)) return;
    at += sizeof *event + event->len;
  }
  OnWritable();
}

bool Watcher::OnEvent(const inotify_event& event) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    Fail(Error(Errc::kDataLoss, "too many changes at once"));
    return false;
  }
  const auto it = directories_.find(event.wd);
  if (it == directories_.end()) return true;
  if ((event.mask & IN_IGNORED) != 0) {
    directories_.erase(it);
    return true;
  }
  if (event.len == 0) return true;  // about the directory itself: its parent tells
  const std::string path = Below(it->second, event.name);
  Tell(path, KindOf(event.mask));
  if (!recursive_ || (event.mask & IN_ISDIR) == 0) return true;
  if ((event.mask & IN_MOVED_FROM) != 0) ForgetTree(path);
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) == 0) return true;
  if (const auto watched = WatchTree(path, true); !watched) {
    Fail(watched.error());
    return false;
  }
  return true;
}

// A name that the wire can't carry is left out.
void Watcher::Tell(const std::string& name, wire::FileEventKind kind) {
  static_cast<void>(wire::AppendRecord(wire::FileEvent{.name = name, .kind = kind}, pending_));
}

void Watcher::OnWritable() {
  if (sent_ < pending_.size()) {
    sent_ +=
        session().Write(channel(), wire::DataKind::kRecords, ByteView(pending_).subspan(sent_));
  }
  if (sent_ == pending_.size()) {
    pending_.clear();
    sent_ = 0;
  }
  registration_.Want(pending_.size() < kPendingMax ? EPOLLIN : 0);
}

}  // namespace soma::guest
