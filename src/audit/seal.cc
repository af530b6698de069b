// SPDX-License-Identifier: Apache-2.0
#include "audit/seal.h"

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/chain.h"
#include "audit/head.h"
#include "audit/journal.h"
#include "audit/layout.h"
#include "audit/open_in.h"
#include "base/clock.h"
#include "base/result.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

// Looked at per opening, so that a thousand living writers cost a newcomer nothing much.
constexpr std::size_t kSegmentsLookedAtMax = 16;
constexpr std::uint64_t kSegmentBytesMax = 1ULL << 30;

// The seal for a segment whose writer is gone; nullopt when it lives, is damaged or missing.
std::optional<HeadEntry> SealFor(const std::string& directory, std::uint64_t segment,
                                 WallTime now) {
  const auto file = OpenIn(directory, SegmentPath(directory, segment), O_RDONLY);
  if (!file) return std::nullopt;
  const auto locked = sys::TryLock(*file, sys::LockKind::kShared);
  if (!locked || !*locked) return std::nullopt;
  const auto size = sys::FileSize(*file);
  if (!size || *size > kSegmentBytesMax) return std::nullopt;
  const auto content = sys::ReadAt(*file, 0, static_cast<std::size_t>(*size));
  if (!content) return std::nullopt;
  const ChainSummary chain = ScanChain(*content, 0);
  if (chain.fault) return std::nullopt;
  HeadEntry entry;
  entry.time = now;
  entry.change = HeadChange::kSeal;
  entry.segment = segment;
  entry.records = chain.records;
  entry.bytes = chain.bytes;
  entry.tail = chain.tail;
  entry.torn = chain.torn;
  return entry;
}

}  // namespace

Status SealDeadSegments(const JournalOptions& options, LockedHead& head) {
  const auto seal = [&](std::uint64_t segment) -> Status {
    const auto entry = SealFor(options.directory, segment, options.clock->Now());
    if (!entry) return {};
    const bool fit =
        entry->torn == 0 && entry->records > 0 && entry->bytes < options.segment_bytes_max;
    return head.Append(*entry, fit ? Reuse::kYes : Reuse::kNo);
  };
  const std::vector<std::uint64_t> open = head.last().open;
  for (std::size_t i = 0; i < open.size() && i < kSegmentsLookedAtMax; ++i) SOMA_TRY(seal(open[i]));
  // Whoever died between making its segment and its line in the head file left this one.
  return seal(head.last().next);
}

}  // namespace soma::audit
