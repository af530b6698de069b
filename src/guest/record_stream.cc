// SPDX-License-Identifier: Apache-2.0
#include "guest/record_stream.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/directory_names.h"
#include "guest/entry.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {
void RecordStream::OnWritable() {
  while (session().IsOpen(channel())) {
    if (sent_ < pending_.size()) {
      sent_ +=
          session().Write(channel(), wire::DataKind::kRecords, ByteView(pending_).subspan(sent_));
      if (sent_ < pending_.size()) return;  // Write asks for the next OnWritable
    }
    pending_.clear();
    sent_ = 0;
    // Several records a message.
    while (pending_.size() < wire::kDataMax / 2) {
      const auto record = Next();
      if (!record) return Fail(record.error());
      if (!*record) break;
      // One that the wire can't carry is left out: it could only be a name of root's making.
      static_cast<void>(wire::AppendRecord(**record, pending_));
    }
    if (pending_.empty()) return Reply(wire::Ok{});
  }
}

Result<std::optional<wire::Record>> RecordList::Next() {
  if (next_ == records_.size()) return std::nullopt;
  return std::move(records_[next_++]);
}

Result<std::unique_ptr<DirectoryLister>> DirectoryLister::Open(wire::Session& session,
                                                               wire::ChannelId channel,
                                                               const std::string& path,
                                                               std::uint32_t depth) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ELOOP) {
      return soma::Fail(Errc::kFailedPrecondition, StrCat("a loop of symlinks: ", path));
    }
    if (errno == ENOENT || errno == ENOTDIR) {
      return soma::Fail(Errc::kNotFound, StrCat("directory not found: ", path));
    }
    return std::unexpected(Error::FromErrno(errno, path));
  }
  if (!S_ISDIR(status.st_mode)) {
    return soma::Fail(Errc::kInvalidArgument, StrCat("path is not a directory: ", path));
  }
  std::unique_ptr<DirectoryLister> lister(
      new DirectoryLister(session, channel, std::max(depth, 1U)));
  SOMA_ASSIGN(auto names, SortedNames(path));
  lister->levels_.push_back({.path = path, .names = std::move(names)});
  return lister;
}

Result<std::optional<wire::Record>> DirectoryLister::Next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.next == level.names.size()) {
      levels_.pop_back();
      continue;
    }
    const std::string& name = level.names[level.next++];
    const std::string path = StrCat(level.path == "/" ? "" : level.path, "/", name);
    auto info = DescribeEntry(accounts_, path);
    if (!info) continue;  // gone, or not for us
    const bool descend = info->type == wire::EntryType::kDirectory && !info->is_symlink;
    if (descend && levels_.size() < depth_) {
      auto names = SortedNames(path);
      if (names) levels_.push_back({.path = path, .names = *std::move(names)});
    }
    return *std::move(info);
  }
  return std::nullopt;
}

}  // namespace soma::guest
