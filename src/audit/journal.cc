// SPDX-License-Identifier: Apache-2.0
#include "audit/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/file_end.h"
#include "audit/head.h"
#include "audit/layout.h"
#include "audit/open_in.h"
#include "audit/opening.h"
#include "audit/recorder.h"
#include "audit/seal.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

// The format's number, in every segment's first record.
constexpr int kFormat = 1;

// One segment being written. The descriptor is shared, so that a sync which runs outside the lock
// keeps it while the writer goes on to the next segment.
struct Segment {
  std::shared_ptr<Fd> file;
  std::uint64_t number = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  Digest tail{};
  std::uint64_t marked_records = 0;
  bool names_durable = false;
};

HeadEntry EntryFor(HeadChange change, const Segment& segment, WallTime now) {
  HeadEntry entry;
  entry.time = now;
  entry.change = change;
  entry.segment = segment.number;
  entry.records = segment.records;
  entry.bytes = segment.bytes;
  entry.tail = segment.tail;
  return entry;
}

Status Append(Segment& segment, const Event& event) {
  const FramedLine line = FrameLine(segment.records, segment.tail, EncodeEvent(event));
  if (auto written = sys::WriteAll(*segment.file, AsBytes(line.text)); !written) {
    // A full disk may have taken a part; cut it off again, so that the next record starts a line.
    SOMA_TRY_WHILE(sys::Truncate(*segment.file, segment.bytes), "cutting off half a record");
    return std::unexpected(std::move(written).error().While("writing the journal"));
  }
  ++segment.records;
  segment.bytes += line.text.size();
  segment.tail = line.hash;
  return {};
}

Result<Fd> CreateSegmentFile(const std::string& directory, std::uint64_t number) {
  const std::string path = SegmentPath(directory, number);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_APPEND;
  auto file = OpenIn(directory, path, kFlags);
  if (!file && file.error().code() == Errc::kNotFound) {
    SOMA_TRY(MakeFolderIn(directory, SegmentFolder(directory, number)));
    file = OpenIn(directory, path, kFlags);
  }
  return file;
}

Event OpeningRecord(const JournalOptions& options, std::uint64_t number, const Digest& head) {
  Event event;
  event.time = options.clock->Now();
  event.kind = EventKind::kJournal;
  event.run = options.run;
  event.subject = kOpeningSubject;
  event.fields = {{"segment", StrCat(number)},
                  {"pid", StrCat(::getpid())},
                  {"format", StrCat(kFormat)},
                  {std::string(kOpeningHeadField), Hex(head)}};
  return event;
}

// An idle segment to go on with; an empty one when none is fit. Making a file can cost a
// millisecond on a file system under load, going on with one costs microseconds; and a million
// short runs leave a few files instead of a million.
Result<Segment> TakeIdleSegment(const JournalOptions& options, LockedHead& head) {
  const std::vector<std::uint64_t> idle = head.last().idle;
  for (auto number = idle.rbegin(); number != idle.rend(); ++number) {
    auto file =
        OpenIn(options.directory, SegmentPath(options.directory, *number), O_RDWR | O_APPEND);
    if (!file) continue;
    const auto locked = sys::TryLock(*file, sys::LockKind::kExclusive);
    if (!locked || !*locked) continue;
    const auto end = ReadFileEnd(*file);
    if (!end) continue;
    const auto line = ParseLine(end->last_line);
    if (!line) continue;
    Segment segment{.number = *number,
                    .records = line->number + 1,
                    .bytes = end->whole_bytes,
                    .tail = line->hash};
    if (end->torn > 0) {
      // A writer died in its opening record. Nothing may follow torn bytes: this one is retired.
      HeadEntry seal = EntryFor(HeadChange::kSeal, segment, options.clock->Now());
      seal.torn = end->torn;
      SOMA_TRY(head.Append(seal));
      continue;
    }
    segment.file = std::make_shared<Fd>(*std::move(file));
    return segment;
  }
  return Segment{};
}

// The file comes before the line in the head file: a death in between leaves a segment of one
// record that the next opening seals, never a line about a segment that is not there.
Result<Segment> MakeSegment(const JournalOptions& options, const LockedHead& head) {
  Segment segment;
  segment.number = head.last().next;
  SOMA_ASSIGN(Fd file, CreateSegmentFile(options.directory, segment.number));
  SOMA_ASSIGN(const bool locked, sys::TryLock(file, sys::LockKind::kExclusive));
  if (!locked) return Fail(Errc::kInternal, "a new segment was locked by somebody else");
  segment.file = std::make_shared<Fd>(std::move(file));
  return segment;
}

// Opens a segment, locked for as long as its writer lives, with the record that says so.
Result<Segment> OpenSegment(const JournalOptions& options, LockedHead& head) {
  SOMA_TRY(SealDeadSegments(options, head));
  SOMA_ASSIGN(Segment segment, TakeIdleSegment(options, head));
  if (!segment.file) {
    SOMA_ASSIGN(segment, MakeSegment(options, head));
  }
  SOMA_TRY(Append(segment, OpeningRecord(options, segment.number, head.head())));
  SOMA_TRY(head.Append(EntryFor(HeadChange::kOpen, segment, options.clock->Now())));
  segment.marked_records = segment.records;
  return segment;
}

}  // namespace

struct Journal::State {
  explicit State(JournalOptions given) : options(std::move(given)) {}

  Status RecordLocked(Event event);
  Status Rotate();
  Status MakeDurable(std::unique_lock<std::mutex>& lock);
  Status MarkNow(HeadChange change);
  void MarkWhenDue(WallTime now);
  Status SyncOutsideLock(const Fd& file, std::uint64_t number, bool names_too) const;

  JournalOptions options;
  std::mutex mutex;
  std::condition_variable sync_ended;
  Segment segment;
  // Over all segments of this writer.
  std::uint64_t appended = 0;
  std::uint64_t durable = 0;
  bool syncing = false;
  bool closed = false;
  // After a failed fdatasync the kernel has dropped the dirty pages (fsync(2)), so nothing later
  // could be trusted; and after a half-written record nothing may follow.
  std::optional<Error> broken;
  WallTime last_mark{};
};

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}

Journal::~Journal() {
  if (!state_->closed) (void)Close();
}

Result<std::unique_ptr<Journal>> Journal::Open(const JournalOptions& options) {
  auto state = std::make_unique<State>(options);
  SOMA_ASSIGN(LockedHead head, LockedHead::Take(options.directory));
  SOMA_ASSIGN(state->segment, OpenSegment(options, head));
  state->last_mark = options.clock->Now();
  state->appended = 1;
  return std::unique_ptr<Journal>(new Journal(std::move(state)));
}

Status Journal::State::RecordLocked(Event event) {
  if (closed) return Fail(Errc::kFailedPrecondition, "the journal is closed");
  if (broken) return std::unexpected(*broken);
  const WallTime now = options.clock->Now();
  if (event.time == WallTime{}) event.time = now;
  if (segment.bytes >= options.segment_bytes_max) SOMA_TRY(Rotate());
  if (auto written = Append(segment, event); !written) {
    // WriteAll failed and Append could not take the part back: see `broken`.
    if (const auto size = sys::FileSize(*segment.file); !size || *size != segment.bytes) {
      broken = written.error();
    }
    return written;
  }
  ++appended;
  MarkWhenDue(now);
  return {};
}

Status Journal::Record(const Event& event, Durability durability) {
  std::unique_lock lock(state_->mutex);
  SOMA_TRY(state_->RecordLocked(event));
  if (durability == Durability::kBeforeEffect) return state_->MakeDurable(lock);
  return {};
}

Status Journal::State::SyncOutsideLock(const Fd& file, std::uint64_t number, bool names_too) const {
  SOMA_TRY(sys::DataSync(file));
  if (!names_too) return {};
  // The new file's name, its folder's, and the head file's line about it.
  for (const std::string& path : {SegmentFolder(options.directory, number),
                                  StrCat(options.directory, "/segments"), options.directory}) {
    SOMA_ASSIGN(const Fd folder, sys::OpenFile(path, O_RDONLY | O_DIRECTORY));
    SOMA_TRY(sys::DataSync(folder));
  }
  SOMA_ASSIGN(const Fd head, sys::OpenFile(HeadPath(options.directory), O_RDONLY));
  return sys::DataSync(head);
}

// Group commit: the first caller syncs for everybody who has appended by then, the others wait.
Status Journal::State::MakeDurable(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t target = appended;
  while (durable < target) {
    if (broken) return std::unexpected(*broken);
    if (syncing) {
      sync_ended.wait(lock);
      continue;
    }
    syncing = true;
    const std::uint64_t reached = appended;
    const std::shared_ptr<Fd> file = segment.file;
    const std::uint64_t number = segment.number;
    const bool names_too = !segment.names_durable;
    lock.unlock();
    const Status synced = SyncOutsideLock(*file, number, names_too);
    lock.lock();
    syncing = false;
    if (synced) {
      durable = std::max(durable, reached);
      if (number == segment.number) segment.names_durable = true;
    } else {
      broken = synced.error();
    }
    sync_ended.notify_all();
  }
  return {};
}

Status Journal::State::MarkNow(HeadChange change) {
  SOMA_ASSIGN(LockedHead head, change == HeadChange::kMark ? LockedHead::TryTake(options.directory)
                                                           : LockedHead::Take(options.directory));
  // A segment that could not be brought in order again must not be gone on with.
  const bool fit = !broken && segment.bytes < options.segment_bytes_max;
  SOMA_TRY(
      head.Append(EntryFor(change, segment, options.clock->Now()), fit ? Reuse::kYes : Reuse::kNo));
  segment.marked_records = segment.records;
  return {};
}

void Journal::State::MarkWhenDue(WallTime now) {
  const auto since =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, (now - last_mark).count()));
  if (since < options.mark_microseconds || segment.marked_records == segment.records) return;
  last_mark = now;
  // A busy lock is no reason to refuse a record that is already written: the next one tries again.
  (void)MarkNow(HeadChange::kMark);
}

Status Journal::State::Rotate() {
  // Rare: what the old segment holds becomes durable here, under the lock.
  SOMA_TRY(SyncOutsideLock(*segment.file, segment.number, !segment.names_durable));
  durable = appended;
  SOMA_TRY(MarkNow(HeadChange::kClose));
  const auto open_next = [&]() -> Status {
    SOMA_ASSIGN(LockedHead head, LockedHead::Take(options.directory));
    SOMA_ASSIGN(segment, OpenSegment(options, head));
    return {};
  };
  // The old one is closed: without a new one there is nowhere to write.
  if (Status opened = open_next(); !opened) {
    broken = opened.error();
    return opened;
  }
  ++appended;
  return {};
}

Status Journal::Flush() {
  std::unique_lock lock(state_->mutex);
  if (state_->closed) return {};
  SOMA_TRY(state_->MakeDurable(lock));
  if (state_->segment.marked_records == state_->segment.records) return {};
  (void)state_->MarkNow(HeadChange::kMark);
  return {};
}

Status Journal::Close() {
  const std::unique_lock lock(state_->mutex);
  if (state_->closed) return {};
  state_->closed = true;
  return state_->MarkNow(HeadChange::kClose);
}

}  // namespace soma::audit
