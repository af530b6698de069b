// SPDX-License-Identifier: Apache-2.0
#include "workspace/workspace_tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/directory.h"
#include "sys/fd.h"

namespace soma::workspace {
namespace {

// tar(5): blocks of 512 bytes, two of zeros at the end.
constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameField = 100;

// Field positions of a ustar header, tar(5).
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kOwner{108, 8};
constexpr Field kGroup{116, 8};
constexpr Field kSize{124, 12};
constexpr int kSizeBits = 33;  // 11 octal digits
constexpr Field kTime{136, 12};
constexpr Field kSum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kTarget{157, 100};
constexpr Field kMagic{257, 8};

using Header = std::array<std::uint8_t, kBlock>;

void Put(Header& header, Field field, std::string_view text) {
  const std::size_t size = std::min(field.size, text.size());
  std::copy_n(text.begin(), size, header.begin() + static_cast<std::ptrdiff_t>(field.at));
}

// Octal digits, as many as fit beside the closing NUL.
void PutNumber(Header& header, Field field, std::uint64_t number) {
  for (std::size_t i = field.size - 1; i-- > 0; number /= 8) {
    header[field.at + i] = static_cast<std::uint8_t>('0' + (number % 8));
  }
}

struct Entry {
  char type = '0';
  std::string name;
  std::string target;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::int64_t modified = 0;
};

void AppendHeader(Bytes& out, const Entry& entry) {
  Header header{};
  Put(header, kName, entry.name);
  PutNumber(header, kMode, entry.mode & 0777U);
  PutNumber(header, kOwner, 0);
  PutNumber(header, kGroup, 0);
  PutNumber(header, kSize, entry.size);
  PutNumber(header, kTime, static_cast<std::uint64_t>(std::max<std::int64_t>(entry.modified, 0)));
  header[kType] = static_cast<std::uint8_t>(entry.type);
  Put(header, kTarget, entry.target);
  Put(header, kMagic, "ustar  ");
  // The sum is taken with its own field full of spaces.
  Put(header, kSum, "        ");
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : header) sum += byte;
  PutNumber(header, {.at = kSum.at, .size = kSum.size - 1}, sum);
  header[kSum.at + 6] = 0;
  out.insert(out.end(), header.begin(), header.end());
}

void Pad(Bytes& out) { out.resize((out.size() + kBlock - 1) / kBlock * kBlock); }

// GNU's way to say a text that is too long for the field of the entry that follows.
void AppendLong(Bytes& out, char type, const std::string& text) {
  if (text.size() <= kNameField) return;
  AppendHeader(out, {.type = type,
                     .name = "././@LongLink",
                     .target = {},
                     .mode = 0644,
                     .size = text.size() + 1,
                     .modified = 0});
  out.insert(out.end(), text.begin(), text.end());
  out.push_back(0);
  Pad(out);
}

void AppendEntry(Bytes& out, const Entry& entry) {
  AppendLong(out, 'K', entry.target);
  AppendLong(out, 'L', entry.name);
  AppendHeader(out, entry);
}

}  // namespace

Result<WorkspaceTar> WorkspaceTar::Open(std::string root,
                                        std::function<bool(std::string_view)> is_hidden,
                                        const TarLimits& limits) {
  WorkspaceTar tar(std::move(root), std::move(is_hidden), limits);
  if (tar.is_hidden_(tar.root_)) {
    return Fail(Errc::kFailedPrecondition,
                StrCat("the policy hides the workspace ", EscapeForTerminal(tar.root_)));
  }
  Fd directory(::open(tar.root_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) {
    return std::unexpected(Error::FromErrno(errno, StrCat("opening ", tar.root_)));
  }
  SOMA_TRY(tar.Enter(std::move(directory), ""));
  return tar;
}

Status WorkspaceTar::Enter(Fd directory, std::string inside) {
  if (levels_.size() >= limits_.depth_max) {
    return Fail(Errc::kOutOfRange, StrCat("the workspace is deeper than ", limits_.depth_max,
                                          " directories: ", EscapeForTerminal(inside)));
  }
  const sys::Dir dir(std::move(directory));
  SOMA_ASSIGN(std::vector<std::string> names, dir.List());
  std::ranges::sort(names);
  Fd kept(::fcntl(dir.fd().get(), F_DUPFD_CLOEXEC, 3));
  if (!kept) return std::unexpected(Error::FromErrno(errno, "holding a directory"));
  levels_.push_back({.directory = std::move(kept),
                     .inside = std::move(inside),
                     .names = std::move(names),
                     .next = 0});
  return {};
}

Result<Bytes> WorkspaceTar::Next() {
  while (out_.size() < kPiece && !ended_) SOMA_TRY(Step());
  return std::exchange(out_, {});
}

Status WorkspaceTar::Step() {
  if (file_) return ReadFile();
  if (levels_.empty()) {
    out_.resize(out_.size() + (2 * kBlock));
    ended_ = true;
    return {};
  }
  Level& level = levels_.back();
  if (level.next == level.names.size()) {
    levels_.pop_back();
    return {};
  }
  const std::string name = level.names[level.next++];
  return AddEntry(level, name);
}

Status WorkspaceTar::AddEntry(const Level& level, const std::string& name) {
  std::string inside = level.inside.empty() ? name : StrCat(level.inside, "/", name);
  if (is_hidden_(StrCat(root_, "/", inside))) {
    ++hidden_;
    return {};
  }
  struct stat facts{};
  if (::fstatat(level.directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return {};  // gone since it was listed
  }
  if (++entries_ > limits_.entries_max) {
    return Fail(Errc::kOutOfRange,
                StrCat("the workspace has more than ", limits_.entries_max, " files"));
  }
  if (S_ISDIR(facts.st_mode)) return AddDirectory(level, name, std::move(inside));
  if (S_ISREG(facts.st_mode)) return AddFile(level, name, inside);
  if (S_ISLNK(facts.st_mode)) return AddLink(level, name, inside);
  ++other_;
  return {};
}

Status WorkspaceTar::AddDirectory(const Level& level, const std::string& name, std::string inside) {
  Fd directory(::openat(level.directory.get(), name.c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!directory || ::fstat(directory.get(), &facts) != 0) {
    ++other_;
    return {};
  }
  // Whoever owns the copy must be able to fill and remove it.
  AppendEntry(out_, {.type = '5',
                     .name = inside + "/",
                     .target = {},
                     .mode = facts.st_mode | 0700U,
                     .size = 0,
                     .modified = facts.st_mtime});
  return Enter(std::move(directory), std::move(inside));
}

Status WorkspaceTar::AddFile(const Level& level, const std::string& name,
                             const std::string& inside) {
  // Not to block should a pipe have taken its place.
  Fd file(::openat(level.directory.get(), name.c_str(),
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts{};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ++other_;
    return {};
  }
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (size >> kSizeBits != 0) {
    return Fail(Errc::kOutOfRange,
                StrCat(EscapeForTerminal(inside), " is larger than 8 GiB and can't be copied in"));
  }
  bytes_ += size;
  if (bytes_ > limits_.bytes_max) {
    return Fail(Errc::kOutOfRange, StrCat("the workspace has more than ", limits_.bytes_max >> 20,
                                          " MiB, at ", EscapeForTerminal(inside)));
  }
  AppendEntry(out_, {.type = '0',
                     .name = inside,
                     .target = {},
                     .mode = facts.st_mode,
                     .size = size,
                     .modified = facts.st_mtime});
  file_ = std::move(file);
  file_left_ = size;
  padding_ = static_cast<std::size_t>((kBlock - (size % kBlock)) % kBlock);
  return {};
}

Status WorkspaceTar::AddLink(const Level& level, const std::string& name,
                             const std::string& inside) {
  std::array<char, 4096> target{};  // PATH_MAX, linux/limits.h
  const ssize_t size =
      ::readlinkat(level.directory.get(), name.c_str(), target.data(), target.size());
  if (size <= 0) {
    ++other_;
    return {};
  }
  AppendEntry(out_, {.type = '2',
                     .name = inside,
                     .target = std::string(target.data(), static_cast<std::size_t>(size)),
                     .mode = 0777,
                     .size = 0,
                     .modified = 0});
  return {};
}

Status WorkspaceTar::ReadFile() {
  const std::size_t before = out_.size();
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file_left_));
  out_.resize(before + wanted);
  const ssize_t got = ::read(file_.get(), out_.data() + before, wanted);
  if (got < 0 && errno == EINTR) {
    out_.resize(before);
    return {};
  }
  if (got < 0) return std::unexpected(Error::FromErrno(errno, "reading the workspace"));
  // Shorter than it was: the zeros that resize has put there stand in.
  const std::size_t used = got == 0 ? wanted : static_cast<std::size_t>(got);
  out_.resize(before + used);
  file_left_ -= used;
  if (file_left_ > 0) return {};
  out_.resize(out_.size() + padding_);
  file_.Reset();
  return {};
}

}  // namespace soma::workspace
