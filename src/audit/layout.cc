// SPDX-License-Identifier: Apache-2.0
#include "audit/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::audit {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSegmentsPerFolder = 1000;

std::string Padded(std::uint64_t value, std::size_t width) {
  const std::string digits = StrCat(value);
  return std::string(width - std::min(width, digits.size()), '0') + digits;
}

std::optional<std::uint64_t> NumberBetween(std::string_view name, std::string_view before,
                                           std::string_view after) {
  if (!name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  if (name.size() < before.size() + after.size()) return std::nullopt;
  name.remove_prefix(before.size());
  name.remove_suffix(after.size());
  return ParseInt<std::uint64_t>(name);
}

Status EachName(const std::string& path, auto&& use) {
  std::error_code error;
  auto at = fs::directory_iterator(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    use(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return std::unexpected(Error::FromErrno(error.value(), StrCat("listing ", path)));
  }
  return {};
}

Status ListFolder(const std::string& directory, const std::string& folder, Listing& listing) {
  return EachName(StrCat(directory, "/segments/", folder), [&](const std::string& name) {
    const auto number = NumberBetween(name, "", ".jsonl");
    const std::string relative = StrCat("segments/", folder, "/", name);
    if (number && SegmentPath(directory, *number) == StrCat(directory, "/", relative)) {
      listing.segments.push_back(*number);
    } else {
      listing.strangers.push_back(relative);
    }
  });
}

}  // namespace

std::string LockPath(std::string_view directory) { return StrCat(directory, "/lock"); }
std::string HeadPath(std::string_view directory) { return StrCat(directory, "/head.jsonl"); }

std::string OldHeadPath(std::string_view directory, std::uint64_t first_number) {
  return StrCat(directory, "/head-", Padded(first_number, 10), ".jsonl");
}

std::string SegmentFolder(std::string_view directory, std::uint64_t segment) {
  return StrCat(directory, "/segments/", segment / kSegmentsPerFolder);
}

std::string SegmentPath(std::string_view directory, std::uint64_t segment) {
  return StrCat(SegmentFolder(directory, segment), "/", Padded(segment, 8), ".jsonl");
}

Result<Listing> ListJournal(const std::string& directory) {
  Listing listing;
  SOMA_TRY(EachName(directory, [&](const std::string& name) {
    if (name == "lock" || name == "head.jsonl" || name == "segments") return;
    if (const auto number = NumberBetween(name, "head-", ".jsonl")) {
      listing.old_heads.push_back(*number);
    } else {
      listing.strangers.push_back(name);
    }
  }));
  std::vector<std::string> folders;
  SOMA_TRY(EachName(StrCat(directory, "/segments"),
                    [&](const std::string& name) { folders.push_back(name); }));
  for (const std::string& folder : folders) SOMA_TRY(ListFolder(directory, folder, listing));
  std::ranges::sort(listing.old_heads);
  std::ranges::sort(listing.segments);
  return listing;
}

}  // namespace soma::audit
