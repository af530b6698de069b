// SPDX-License-Identifier: Apache-2.0
// Where things lie in a journal's directory.
#ifndef SOMA_AUDIT_LAYOUT_H_
#define SOMA_AUDIT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace soma::audit {

std::string LockPath(std::string_view directory);
std::string HeadPath(std::string_view directory);
// A part of the head file that was set aside; `first_number` is its first line's.
std::string OldHeadPath(std::string_view directory, std::uint64_t first_number);
// segments/N/NNNNNNNN.jsonl: a thousand to a folder.
std::string SegmentFolder(std::string_view directory, std::uint64_t segment);
std::string SegmentPath(std::string_view directory, std::uint64_t segment);

struct Listing {
  std::vector<std::uint64_t> old_heads;  // ascending
  std::vector<std::uint64_t> segments;   // ascending
  std::vector<std::string> strangers;    // names that do not belong there
};
// A missing directory gives an empty listing.
Result<Listing> ListJournal(const std::string& directory);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_LAYOUT_H_
