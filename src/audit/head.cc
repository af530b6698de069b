// SPDX-License-Identifier: Apache-2.0
#include "audit/head.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/chain.h"
#include "audit/file_end.h"
#include "audit/layout.h"
#include "audit/open_in.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

// A larger head file is set aside when the next segment is opened.
constexpr std::uint64_t kHeadFileBytesMax = 8 << 20;
constexpr int kPatienceMilliseconds = 2000;

Status Damaged(std::string_view directory, std::string_view what) {
  return Fail(Errc::kDataLoss,
              StrCat("the journal in ", directory, " is damaged: ", what,
                     " ('soma audit verify' says more; move the directory away to go on)"));
}

// Segment 0 with one record may be there: its writer died before the head file's first line.
bool MayBeFresh(const std::string& directory, const Listing& listing) {
  if (listing.segments.empty()) return true;
  if (listing.segments.back() != 0) return false;
  const auto file = OpenIn(directory, SegmentPath(directory, 0), O_RDONLY);
  if (!file) return false;
  const auto end = ReadFileEnd(*file);
  if (!end) return false;
  if (end->whole_bytes == 0) return true;
  const auto line = ParseLine(end->last_line);
  return line && line->number == 0;
}

void Drop(std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  const auto found = std::find(numbers.begin(), numbers.end(), number);
  if (found != numbers.end()) numbers.erase(found);
}

void ApplyToLists(HeadEntry& entry, Reuse reuse) {
  if (entry.change == HeadChange::kMark) return;
  Drop(entry.open, entry.segment);
  Drop(entry.idle, entry.segment);
  if (entry.change == HeadChange::kOpen) {
    entry.open.push_back(entry.segment);
  } else if (reuse == Reuse::kYes) {
    entry.idle.push_back(entry.segment);
    if (entry.idle.size() > kIdleSegmentsMax) entry.idle.erase(entry.idle.begin());
  }
}

}  // namespace

Result<LockedHead> LockedHead::Take(const std::string& directory) {
  return TakeWithin(directory, kPatienceMilliseconds);
}

Result<LockedHead> LockedHead::TryTake(const std::string& directory) {
  return TakeWithin(directory, 0);
}

Result<LockedHead> LockedHead::TakeWithin(const std::string& directory, int patience_milliseconds) {
  LockedHead head;
  head.directory_ = directory;
  auto lock = OpenIn(directory, LockPath(directory), O_RDWR | O_CREAT);
  if (!lock && lock.error().errno_value() == ENOENT) {
    SOMA_TRY(sys::MakeDirectories(directory, 0700));
    SOMA_TRY(MakeFolderIn(directory, StrCat(directory, "/segments")));
    lock = OpenIn(directory, LockPath(directory), O_RDWR | O_CREAT);
  }
  if (!lock) return std::unexpected(std::move(lock).error().While("opening the journal"));
  head.lock_ = *std::move(lock);
  SOMA_TRY_WHILE(sys::LockWithin(head.lock_, sys::LockKind::kExclusive,
                                 std::chrono::milliseconds(patience_milliseconds)),
                 StrCat("locking the journal in ", directory));
  SOMA_TRY(head.Load());
  return head;
}

Status LockedHead::Load() {
  const std::string path = HeadPath(directory_);
  SOMA_ASSIGN(file_, OpenIn(directory_, path, O_RDWR | O_CREAT | O_APPEND));
  SOMA_TRY(LoadLastLine(file_));
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(file_));
  if (size > 0) return RotateWhenLarge(size);
  // Empty: a fresh journal, or its writer died between setting the old part aside and this line.
  SOMA_ASSIGN(const Listing listing, ListJournal(directory_));
  if (listing.old_heads.empty()) {
    if (!MayBeFresh(directory_, listing)) {
      return Damaged(directory_, "segments exist, but the head file is missing");
    }
    return {};
  }
  const std::string old_path = OldHeadPath(directory_, listing.old_heads.back());
  SOMA_ASSIGN(const Fd old, OpenIn(directory_, old_path, O_RDWR));
  return LoadLastLine(old);
}

Status LockedHead::LoadLastLine(const Fd& file) {
  SOMA_ASSIGN(const FileEnd end, ReadFileEnd(file));
  if (end.torn > 0) {
    // A line that its writer's death cut: nobody has been told of it, so it never was.
    mended_ = end.torn;
    SOMA_TRY(sys::Truncate(file, end.whole_bytes));
  }
  if (end.whole_bytes == 0) return {};
  const auto line = ParseLine(end.last_line);
  if (!line) return Damaged(directory_, StrCat("head.jsonl, last line: ", line.error().message()));
  const auto entry = DecodeHeadEntry(line->members);
  if (!entry) return Damaged(directory_, entry.error().message());
  next_number_ = line->number + 1;
  head_ = line->hash;
  last_ = *entry;
  return {};
}

Status LockedHead::RotateWhenLarge(std::uint64_t size) {
  if (size < kHeadFileBytesMax) return {};
  SOMA_ASSIGN(const std::string start, sys::ReadAt(file_, 0, kLineBytesMax));
  const auto first = ParseLine(std::string_view(start).substr(0, start.find('\n')));
  if (!first)
    return Damaged(directory_, StrCat("head.jsonl, first line: ", first.error().message()));
  const std::string path = HeadPath(directory_);
  if (::rename(path.c_str(), OldHeadPath(directory_, first->number).c_str()) != 0) {
    return std::unexpected(Error::FromErrno(errno, "setting the old head file aside"));
  }
  SOMA_ASSIGN(file_, OpenIn(directory_, path, O_RDWR | O_CREAT | O_APPEND));
  return {};
}

Status LockedHead::Append(HeadEntry entry, Reuse reuse) {
  entry.next = std::max(last_.next, entry.segment + 1);
  entry.open = last_.open;
  entry.idle = last_.idle;
  entry.mended = mended_;
  ApplyToLists(entry, reuse);
  if (entry.open.size() > kOpenSegmentsMax) {
    return Fail(Errc::kResourceExhausted, "too many writers have the journal open");
  }
  const FramedLine line = FrameLine(next_number_, head_, EncodeHeadEntry(entry));
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(file_));
  if (auto written = sys::WriteAll(file_, AsBytes(line.text)); !written) {
    // A full disk may have taken a part of the line; without it the file is as before.
    (void)sys::Truncate(file_, size);
    return std::unexpected(std::move(written).error().While("writing the journal's head file"));
  }
  ++next_number_;
  head_ = line.hash;
  last_ = std::move(entry);
  mended_ = 0;
  return {};
}

Status LockedHead::Sync() { return sys::DataSync(file_); }

}  // namespace soma::audit
