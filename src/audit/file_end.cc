// SPDX-License-Identifier: Apache-2.0
#include "audit/file_end.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "audit/chain.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

// Looks in the file's last `window` bytes; nullopt when a whole line does not fit into them.
Result<std::optional<FileEnd>> ReadWindow(const Fd& file, std::uint64_t size,
                                          std::uint64_t window) {
  const std::uint64_t from = size - std::min(size, window);
  SOMA_ASSIGN(std::string text, sys::ReadAt(file, from, static_cast<std::size_t>(size - from)));
  const std::size_t newline = text.find_last_of('\n');
  FileEnd end;
  if (newline == std::string::npos) {
    if (from > 0) return std::nullopt;
    end.torn = text.size();
    return end;
  }
  end.torn = text.size() - newline - 1;
  end.whole_bytes = from + newline + 1;
  text.resize(newline);
  const std::size_t before = text.find_last_of('\n');
  if (before == std::string::npos && from > 0) return std::nullopt;
  end.last_line = before == std::string::npos ? text : text.substr(before + 1);
  return end;
}

}  // namespace

Result<FileEnd> ReadFileEnd(const Fd& file) {
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(file));
  // Most lines are short; the second window has room for the longest and a torn one after it.
  for (const std::uint64_t window : {std::uint64_t{4096}, std::uint64_t{2 * kLineBytesMax + 2}}) {
    SOMA_ASSIGN(auto end, ReadWindow(file, size, window));
    if (end) return *std::move(end);
  }
  return Fail(Errc::kDataLoss, "its last line is longer than any can be");
}

}  // namespace soma::audit
