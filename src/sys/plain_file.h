// SPDX-License-Identifier: Apache-2.0
// Plain files of our own state: open, read, write, lock, sync. One thin wrapper a call; every
// descriptor is close-on-exec and never a terminal (O_NOCTTY).
//
// Paths here are ours (the state directory). Paths that a sandbox or its user can shape go through
// Dir and RelPath instead.
#ifndef SOMA_SYS_PLAIN_FILE_H_
#define SOMA_SYS_PLAIN_FILE_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

// open(2) with O_CLOEXEC | O_NOCTTY added; `mode` is for O_CREAT.
Result<Fd> OpenFile(const std::string& path, int flags, mode_t mode = 0600);

// Makes the directory and its missing parents with `mode`. An existing directory is fine.
Status MakeDirectories(const std::string& path, mode_t mode);

Result<std::uint64_t> FileSize(const Fd& fd);

// pread(2) until `size` bytes or the end of the file. At most `size` bytes come back.
Result<std::string> ReadAt(const Fd& fd, std::uint64_t offset, std::size_t size);

// The whole file; kOutOfRange when it is larger than `bytes_max`, without having read it all.
Result<std::string> ReadWholeFile(const std::string& path, std::uint64_t bytes_max);

// write(2) until everything is written. On an error a part may have been written.
Status WriteAll(const Fd& fd, ByteView bytes);

// Writes a new file beside `path`, syncs it and renames it over: readers see the old or the new
// content, never a mixture, also after a crash.
Status WriteFileAtomically(const std::string& path, ByteView bytes, mode_t mode = 0600);

Status Truncate(const Fd& fd, std::uint64_t size);
// fdatasync(2). For a directory's descriptor: makes its new names durable.
Status DataSync(const Fd& fd);

enum class LockKind : std::uint8_t { kShared, kExclusive };
// flock(2) without waiting; false when somebody else holds it. Released when the last descriptor
// of this open file is closed (inherited ones count).
Result<bool> TryLock(const Fd& fd, LockKind kind);
// Polls for the lock; kUnavailable after `patience`. Sleeps between tries, 1 ms at most.
Status LockWithin(const Fd& fd, LockKind kind, std::chrono::milliseconds patience);
Status Unlock(const Fd& fd);

}  // namespace soma::sys

#endif  // SOMA_SYS_PLAIN_FILE_H_
