// SPDX-License-Identifier: Apache-2.0
// Journal: the writer's end of the record. docs/adr/0003-journal.md has the format and the reasons.
//
// A journal is a directory:
//   head.jsonl            the head file: one line for each opening, mark, closing or sealing of a
//                         segment, chained; the hash of its last line is *the head*
//   segments/N/NNNNNNNN.jsonl  a segment (N = number / 1000): chained records of one writer at a
//                         time; each writer's first record names the head that it continues
//
// Many processes may write at once, each to a segment of its own; the head file is appended under a
// lock that is held for microseconds. A writer goes on with an idle segment or makes one. It holds
// an exclusive flock on it as long as it lives, so the next one to open the journal finds abandoned
// segments and seals them.
// Killed at any instruction it leaves a journal that verifies: at worst the last record is torn,
// which the seal names.
//
// Thread-safe within one process. After fork the child must not use it, and should close the
// descriptors (they are close-on-exec): an inherited descriptor keeps the segment looking alive.
#ifndef SOMA_AUDIT_JOURNAL_H_
#define SOMA_AUDIT_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/clock.h"
#include "base/result.h"

namespace soma::audit {

struct JournalOptions {
  // The journal's directory; made with mode 0700 (and its parents) when it is missing.
  std::string directory;
  // Written into the first record; names the writer to a reader: the run's or the server's id.
  std::string run;
  // Not owned; outlives the journal.
  Clock* clock = nullptr;
  // A segment that reached this size is closed and the next one opened.
  std::uint64_t segment_bytes_max = 64ULL << 20;
  // Records of a living writer are marked in the head file at most this far apart, when more are
  // appended. What lies behind the last mark can be cut off without a trace while the writer lives.
  std::uint64_t mark_microseconds = 1'000'000;
};

class Journal final : public Recorder {
 public:
  // Opens a segment of its own. Fails closed: kUnavailable when the head file stays locked for two
  // seconds, kDataLoss when the head file is damaged, else what the kernel said.
  static Result<std::unique_ptr<Journal>> Open(const JournalOptions& options);
  // Closes the segment properly if Close was not called; errors are lost then.
  ~Journal() override;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  Status Record(const Event& event, Durability durability) override;

  // Makes everything recorded so far durable and marks it in the head file. Callers that come
  // together share one fdatasync. Blocks; not on an event loop.
  Status Flush();

  // Writes the closing line to the head file. The journal refuses records afterwards.
  Status Close();

 private:
  struct State;
  explicit Journal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace soma::audit

#endif  // SOMA_AUDIT_JOURNAL_H_
