// SPDX-License-Identifier: Apache-2.0
// The head file: the journal's own chain, which says for every segment when it was opened and how
// far it had come. It lets a reader find a cut tail, and its last hash, the head, stands for
// everything before it.
//
// A directory holds `lock` (an empty file, for flock), `head.jsonl`, and older parts of it as
// `head-NNNNNNNNNN.jsonl`, named by their first line's number.
#ifndef SOMA_AUDIT_HEAD_H_
#define SOMA_AUDIT_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain.h"
#include "base/clock.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::audit {

enum class HeadChange : std::uint8_t {
  kOpen,   // a writer opened the segment: a new one, or an idle one
  kMark,   // its writer lives and had come this far
  kClose,  // its writer left it: only another opening may follow
  kSeal,   // its writer had died; the next one to come found it like this
};
std::string_view ChangeName(HeadChange change);

struct HeadEntry {
  WallTime time{};
  HeadChange change = HeadChange::kOpen;
  std::uint64_t segment = 0;
  std::uint64_t records = 0;        // in the segment, so far
  std::uint64_t bytes = 0;          // theirs
  Digest tail{};                    // the hash of the last of them
  std::uint64_t torn = 0;           // only kSeal: bytes of a record that the writer's death cut
  std::uint64_t mended = 0;         // bytes of a torn line of the head file that this line replaced
  std::uint64_t next = 0;           // the number that the next segment gets
  std::vector<std::uint64_t> open;  // segments that have a writer, after this line
  std::vector<std::uint64_t> idle;  // segments that the next writer may go on with; the last first

  friend bool operator==(const HeadEntry&, const HeadEntry&) = default;
};

// Writers at one time; one more fails to open. Bounds the head's lines.
inline constexpr std::size_t kOpenSegmentsMax = 1024;
// Idle segments remembered; more than this many writers at once leave some unused.
inline constexpr std::size_t kIdleSegmentsMax = 64;

// Whether a later writer may go on with a segment that ends.
enum class Reuse : std::uint8_t { kNo, kYes };

std::string EncodeHeadEntry(const HeadEntry& entry);
// Exactly what EncodeHeadEntry writes. Untrusted input.
Result<HeadEntry> DecodeHeadEntry(std::string_view members);

// Holds the journal's lock from Take to destruction.
class LockedHead {
 public:
  // Makes what is missing of the directory. kUnavailable after two seconds of waiting;
  // kDataLoss when the last line is damaged, or segments exist without a head file.
  static Result<LockedHead> Take(const std::string& directory);
  // Like Take, but fails with kUnavailable at once when somebody else holds the lock.
  static Result<LockedHead> TryTake(const std::string& directory);

  // The last line's; a fresh journal has zeros.
  std::uint64_t next_number() const { return next_number_; }
  const Digest& head() const { return head_; }
  const HeadEntry& last() const { return last_; }

  // Fills in next, open, idle and mended by itself, from the last entry and the change.
  Status Append(HeadEntry entry, Reuse reuse = Reuse::kNo);
  Status Sync();

 private:
  static Result<LockedHead> TakeWithin(const std::string& directory, int patience_milliseconds);
  Status Load();
  Status LoadLastLine(const Fd& file);
  Status RotateWhenLarge(std::uint64_t size);

  std::string directory_;
  Fd lock_;
  Fd file_;
  std::uint64_t next_number_ = 0;
  Digest head_{};
  HeadEntry last_;
  std::uint64_t mended_ = 0;
};

}  // namespace soma::audit

#endif  // SOMA_AUDIT_HEAD_H_
