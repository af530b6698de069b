// SPDX-License-Identifier: Apache-2.0
#include "guest/file_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "guest/accounts.h"
#include "guest/entry.h"
#include "guest/files.h"
#include "guest/paths.h"
#include "sys/fd.h"
#include "sys/plain_file.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

// O_NONBLOCK everywhere: opening a FIFO must not stop the agent.
Status CheckPlain(const Fd& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return std::unexpected(Error::FromErrno(errno, path));
  if (S_ISREG(status.st_mode)) return {};
  return soma::Fail(Errc::kInvalidArgument,
                    StrCat("path ", path,
                           S_ISDIR(status.st_mode) ? " is a directory" : " is not a regular file"));
}

Result<Fd> OpenExisting(const User& user, const std::string& path) {
  Fd file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const bool is_link = !file && errno == ELOOP;
  if (is_link) file = Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    if (errno == EISDIR)
      return soma::Fail(Errc::kInvalidArgument, StrCat("path is a directory: ", path));
    return std::unexpected(Error::FromErrno(errno, StrCat("opening ", path)));
  }
  SOMA_TRY(CheckPlain(file, path));
  SOMA_TRY(sys::Truncate(file, 0));
  if (!is_link) SOMA_TRY(GiveTo(user, file));
  return file;
}

Result<Fd> OpenForWriting(const User& user, const std::string& path, mode_t mode) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC, mode));
  if (!file && errno == EEXIST) return OpenExisting(user, path);
  if (!file) return std::unexpected(Error::FromErrno(errno, StrCat("creating ", path)));
  SOMA_TRY(GiveTo(user, file));
  return file;
}

}  // namespace

// ---- Reading ----

Result<std::unique_ptr<FileReader>> FileReader::Open(wire::Session& session,
                                                     wire::ChannelId channel,
                                                     const Accounts& accounts,
                                                     const std::string& path,
                                                     const wire::ReadFile& request) {
  SOMA_ASSIGN(wire::EntryInfo info, DescribeEntry(accounts, path));
  SOMA_ASSIGN(Fd file, sys::OpenFile(path, O_RDONLY | O_NONBLOCK));
  SOMA_TRY(CheckPlain(file, path));
  std::unique_ptr<FileReader> reader(new FileReader(session, channel, std::move(file), request));
  reader->Reply(wire::Opened{.info = std::move(info)});
  return reader;
}

void FileReader::OnWritable() {
  std::array<std::uint8_t, wire::kDataMax> buffer;
  while (session().IsOpen(channel())) {
    const std::size_t room = session().Writable(channel());
    if (room == 0) return session().WantWritable(channel());
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>({room, buffer.size(), left_}));
    const ssize_t got = ::pread(file_.get(), buffer.data(), size, static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(Error::FromErrno(errno, "reading"));
    if (got == 0) return Reply(wire::Ok{});
    const auto count = static_cast<std::size_t>(got);
    session().Write(channel(), wire::DataKind::kBytes, ByteView(buffer).first(count));
    offset_ += count;
    left_ -= count;
  }
}

// ---- Writing ----

Result<std::unique_ptr<FileWriter>> FileWriter::Open(wire::Session& session,
                                                     wire::ChannelId channel, const User& user,
                                                     const std::string& path,
                                                     wire::WriteFile request) {
  SOMA_TRY(MakeDirectories(user, ParentOf(path)));
  std::unique_ptr<FileWriter> writer(new FileWriter(session, channel));
  constexpr std::uint32_t kModeBits = 07777;
  const auto mode = static_cast<mode_t>(request.mode & kModeBits);
  if (request.atomic) {
    const std::string temporary = StrCat(ParentOf(path), "/.soma-", ::getpid(), "-", channel);
    static_cast<void>(::unlink(temporary.c_str()));  // of an earlier session
    SOMA_ASSIGN(writer->file_, OpenForWriting(user, temporary, mode));
    writer->temporary_ = temporary;
  } else {
    SOMA_ASSIGN(writer->file_, OpenForWriting(user, path, mode));
  }
  writer->path_ = path;
  writer->request_ = std::move(request);
  writer->Reply(wire::Opened{});
  return writer;
}

FileWriter::~FileWriter() {
  if (!temporary_.empty()) static_cast<void>(::unlink(temporary_.c_str()));
}

void FileWriter::OnMessage(wire::Message& message) {
  if (const auto* data = std::get_if<wire::Data>(&message)) {
    const auto written = sys::WriteAll(file_, data->bytes);
    if (!written) return Fail(written.error());
    session().Consumed(channel(), data->bytes.size());
    return;
  }
  if (const auto done = Finish(); !done) return Fail(done.error());
  auto info = DescribeEntry(Accounts::Load(), path_);
  if (!info) return Fail(info.error());
  Reply(wire::Entry{.info = *std::move(info)});
}

Status FileWriter::Finish() {
  SOMA_TRY(ReplaceMetadata(file_, request_.metadata));
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno == EISDIR)
      return soma::Fail(Errc::kInvalidArgument, StrCat("path is a directory: ", path_));
    return std::unexpected(Error::FromErrno(errno, StrCat("replacing ", path_)));
  }
  temporary_.clear();
  return {};
}

}  // namespace soma::guest
