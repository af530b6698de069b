// SPDX-License-Identifier: Apache-2.0
#include "front/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"

namespace soma::front {

namespace {

// False with errno set when not everything could be written.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

void WriteText(int stream, std::string_view text) { (void)WriteAll(stream, text); }

Status WriteOut(std::string_view text) {
  if (WriteAll(STDOUT_FILENO, text)) return {};
  return std::unexpected(Error::FromErrno(errno, "writing to standard output"));
}

void WriteLine(int stream, std::string_view line) {
  std::string text(line);
  std::ranges::replace(text, '\n', ' ');
  WriteText(stream, text + "\n");
}

ReportFile::ReportFile(Fd folder, std::string name, Fd file, bool created)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      file_(std::move(file)),
      created_(created) {}

Result<ReportFile> ReportFile::Open(const std::string& path) {
  const std::string what = StrCat("report ", EscapeForTerminal(path));
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  Fd folder(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return std::unexpected(Error::FromErrno(errno, what));
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  bool created = true;
  Fd file(openat(folder.get(), name.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
  if (!file && errno == EEXIST) {
    created = false;
    file = Fd(openat(folder.get(), name.c_str(), kFlags));
  }
  if (!file) return std::unexpected(Error::FromErrno(errno, what));
  struct stat facts{};
  if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return Fail(Errc::kInvalidArgument, what + " is no regular file");
  }
  return ReportFile(std::move(folder), std::move(name), std::move(file), created);
}

ReportFile::~ReportFile() {
  if (created_ && file_) (void)unlinkat(folder_.get(), name_.c_str(), 0);
}

Status ReportFile::Write(std::string_view text) {
  created_ = false;
  const std::string what = StrCat("report ", EscapeForTerminal(name_));
  struct stat facts{};
  if (fstat(file_.get(), &facts) != 0 || facts.st_nlink == 0) {
    return Fail(Errc::kFailedPrecondition, what + " was removed by the command");
  }
  if (ftruncate(file_.get(), 0) != 0 || !WriteAll(file_.get(), text)) {
    return std::unexpected(Error::FromErrno(errno, what));
  }
  return {};
}

}  // namespace soma::front
