// SPDX-License-Identifier: Apache-2.0
#include "sys/plain_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::sys {

namespace {

std::unexpected<Error> FailErrno(std::string_view what) {
  return std::unexpected(Error::FromErrno(errno, what));
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

Result<Fd> OpenFile(const std::string& path, int flags, mode_t mode) {
  const int raw = Retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode); });
  if (raw < 0) return FailErrno(StrCat("open ", path));
  return Fd(raw);
}

Status MakeDirectories(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return {};
  if (errno == ENOENT) {
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos || slash == 0) return FailErrno(StrCat("mkdir ", path));
    SOMA_TRY(MakeDirectories(path.substr(0, slash), mode));
    if (::mkdir(path.c_str(), mode) == 0) return {};
  }
  if (errno != EEXIST) return FailErrno(StrCat("mkdir ", path));
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return FailErrno(StrCat("stat ", path));
  if (!S_ISDIR(info.st_mode)) {
    return Fail(Errc::kFailedPrecondition, StrCat(path, " is not a directory"));
  }
  return {};
}

Result<std::uint64_t> FileSize(const Fd& fd) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return FailErrno("fstat");
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::string> ReadAt(const Fd& fd, std::uint64_t offset, std::size_t size) {
  std::string out(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = Retry([&] {
      return ::pread(fd.get(), out.data() + done, size - done, static_cast<off_t>(offset + done));
    });
    if (got < 0) return FailErrno("pread");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  out.resize(done);
  return out;
}

Result<std::string> ReadWholeFile(const std::string& path, std::uint64_t bytes_max) {
  SOMA_ASSIGN(const Fd fd, OpenFile(path, O_RDONLY));
  SOMA_ASSIGN(const std::uint64_t size, FileSize(fd));
  if (size > bytes_max) {
    return Fail(Errc::kOutOfRange, StrCat(path, " has ", size, " bytes, more than ", bytes_max));
  }
  // Files below /proc say 0, and a file may grow meanwhile: read one byte more than is allowed.
  std::string out;
  while (out.size() <= bytes_max) {
    constexpr std::uint64_t kStepBytes = 1 << 20;
    const std::uint64_t step = std::min(kStepBytes, bytes_max + 1 - out.size());
    SOMA_ASSIGN(const std::string part, ReadAt(fd, out.size(), static_cast<std::size_t>(step)));
    out += part;
    if (part.size() < step) return out;
  }
  return Fail(Errc::kOutOfRange, StrCat(path, " has more than ", bytes_max, " bytes"));
}

Status WriteAll(const Fd& fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = Retry([&] { return ::write(fd.get(), bytes.data(), bytes.size()); });
    if (written < 0) return FailErrno("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status WriteFileAtomically(const std::string& path, ByteView bytes, mode_t mode) {
  // The process id keeps two writers apart; the last rename wins.
  const std::string fresh = StrCat(path, ".", ::getpid(), ".new");
  const auto write = [&]() -> Status {
    SOMA_ASSIGN(const Fd fd, OpenFile(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
    SOMA_TRY(WriteAll(fd, bytes));
    SOMA_TRY(DataSync(fd));
    if (::rename(fresh.c_str(), path.c_str()) != 0) return FailErrno(StrCat("rename to ", path));
    return {};
  };
  Status status = write();
  if (!status) {
    (void)::unlink(fresh.c_str());
    return status;
  }
  const std::size_t slash = path.find_last_of('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  SOMA_ASSIGN(const Fd directory, OpenFile(parent, O_RDONLY | O_DIRECTORY));
  return DataSync(directory);
}

Status Truncate(const Fd& fd, std::uint64_t size) {
  if (Retry([&] { return ::ftruncate(fd.get(), static_cast<off_t>(size)); }) != 0) {
    return FailErrno("ftruncate");
  }
  return {};
}

Status DataSync(const Fd& fd) {
  if (Retry([&] { return ::fdatasync(fd.get()); }) != 0) return FailErrno("fdatasync");
  return {};
}

Result<bool> TryLock(const Fd& fd, LockKind kind) {
  const int operation = kind == LockKind::kShared ? LOCK_SH : LOCK_EX;
  if (Retry([&] { return ::flock(fd.get(), operation | LOCK_NB); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return FailErrno("flock");
}

Status LockWithin(const Fd& fd, LockKind kind, std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  long pause_nanoseconds = 20'000;
  while (true) {
    SOMA_ASSIGN(const bool locked, TryLock(fd, kind));
    if (locked) return {};
    if (std::chrono::steady_clock::now() >= give_up) {
      return Fail(Errc::kUnavailable,
                  StrCat("the lock stayed taken for ", patience.count(), " ms"));
    }
    const timespec pause{0, pause_nanoseconds};
    (void)::nanosleep(&pause, nullptr);
    pause_nanoseconds = std::min(pause_nanoseconds * 2, 1'000'000L);
  }
}

Status Unlock(const Fd& fd) {
  if (::flock(fd.get(), LOCK_UN) != 0) return FailErrno("flock");
  return {};
}

}  // namespace soma::sys
