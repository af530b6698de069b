// SPDX-License-Identifier: Apache-2.0
// Reads a journal's directory for the verifier.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "audit/chain.h"
#include "audit/layout.h"
#include "audit/verify.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

constexpr std::uint64_t kFileBytesMax = 1ULL << 30;
constexpr std::chrono::milliseconds kPatience(2000);

// Reads the head file and the names at one moment. A copy that somebody was given may lack the
// lock, and then nobody writes it.
Result<JournalSource> Snapshot(const std::string& directory) {
  JournalSource source;
  auto lock = sys::OpenFile(LockPath(directory), O_RDONLY | O_NOFOLLOW);
  if (lock) {
    SOMA_TRY_WHILE(sys::LockWithin(*lock, sys::LockKind::kShared, kPatience),
                   StrCat("locking the journal in ", directory));
  } else if (lock.error().code() != Errc::kNotFound) {
    return std::unexpected(std::move(lock).error());
  }
  SOMA_ASSIGN(source.listing, ListJournal(directory));
  for (const std::uint64_t first : source.listing.old_heads) {
    SOMA_ASSIGN(std::string part, sys::ReadWholeFile(OldHeadPath(directory, first), kFileBytesMax));
    source.heads.push_back(std::move(part));
  }
  auto current = sys::ReadWholeFile(HeadPath(directory), kFileBytesMax);
  if (!current && current.error().code() != Errc::kNotFound) {
    return std::unexpected(std::move(current).error());
  }
  source.heads.push_back(std::move(current).value_or(""));
  return source;
}

bool IsLive(const std::string& path) {
  const auto file = sys::OpenFile(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return false;
  const auto locked = sys::TryLock(*file, sys::LockKind::kShared);
  return locked && !*locked;
}

}  // namespace

Result<VerifyReport> VerifyJournal(const std::string& directory,
                                   const std::optional<Digest>& expected_head) {
  if (::access(directory.c_str(), R_OK | X_OK) != 0) {
    return std::unexpected(Error::FromErrno(errno, StrCat("reading the journal ", directory)));
  }
  SOMA_ASSIGN(JournalSource source, Snapshot(directory));
  source.read_segment = [&](std::uint64_t segment) {
    return sys::ReadWholeFile(SegmentPath(directory, segment), kFileBytesMax);
  };
  source.is_live = [&](std::uint64_t segment) { return IsLive(SegmentPath(directory, segment)); };
  return VerifySource(source, expected_head);
}

}  // namespace soma::audit
