// SPDX-License-Identifier: Apache-2.0
#include "front/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

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

Status WriteFile(const std::string& path, std::string_view text) {
  const std::string what = StrCat("report ", EscapeForTerminal(path));
  const Fd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd || !WriteAll(fd.get(), text)) return std::unexpected(Error::FromErrno(errno, what));
  return {};
}

}  // namespace soma::front
