// SPDX-License-Identifier: Apache-2.0
#include "audit/tail.h"

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/layout.h"
#include "audit/open_in.h"
#include "base/result.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::audit {

namespace {

constexpr std::size_t kSegmentsMax = 16;
// Read in one go from one segment; the rest comes with the next call.
constexpr std::uint64_t kReadBytesMax = 64ULL << 20;

void SortByTime(std::vector<TailRecord>& records) {
  std::ranges::sort(records, [](const TailRecord& a, const TailRecord& b) {
    return std::tie(a.event.time, a.segment, a.number) <
           std::tie(b.event.time, b.segment, b.number);
  });
}

}  // namespace

Result<std::vector<TailRecord>> Tail::ReadNew(std::uint64_t segment) {
  std::vector<TailRecord> records;
  std::uint64_t& done = read_[segment];
  SOMA_ASSIGN(const Fd file, OpenIn(directory_, SegmentPath(directory_, segment), O_RDONLY));
  SOMA_ASSIGN(const std::uint64_t size, sys::FileSize(file));
  if (size <= done) return records;
  const std::uint64_t want = std::min(size - done, kReadBytesMax);
  SOMA_ASSIGN(const std::string text, sys::ReadAt(file, done, static_cast<std::size_t>(want)));
  std::string_view rest = text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const auto line = ParseLine(rest.substr(0, end));
    if (line) {
      if (auto event = DecodeEvent(line->members)) {
        records.push_back(
            {segment, line->number, *std::move(event), std::string(rest.substr(0, end))});
      }
    }
    done += end + 1;
    rest.remove_prefix(end + 1);
  }
  return records;
}

Result<std::vector<TailRecord>> Tail::Next() {
  SOMA_ASSIGN(const Listing listing, ListJournal(directory_));
  std::vector<TailRecord> all;
  for (const std::uint64_t segment : listing.segments) {
    SOMA_ASSIGN(auto records, ReadNew(segment));
    std::ranges::move(records, std::back_inserter(all));
  }
  SortByTime(all);
  return all;
}

Result<std::vector<TailRecord>> Tail::Last(std::size_t count) {
  SOMA_ASSIGN(const Listing listing, ListJournal(directory_));
  std::vector<std::pair<std::filesystem::file_time_type, std::uint64_t>> by_time;
  for (const std::uint64_t segment : listing.segments) {
    std::error_code error;
    const std::string path = SegmentPath(directory_, segment);
    const auto written = std::filesystem::last_write_time(path, error);
    const auto size = error ? 0 : std::filesystem::file_size(path, error);
    if (error) continue;
    read_[segment] = size;
    by_time.emplace_back(written, segment);
  }
  std::ranges::sort(by_time, std::greater<>());
  if (by_time.size() > kSegmentsMax) by_time.resize(kSegmentsMax);
  for (const auto& [written, segment] : by_time) read_[segment] = 0;
  SOMA_ASSIGN(std::vector<TailRecord> all, Next());
  if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
  return all;
}

}  // namespace soma::audit
