// SPDX-License-Identifier: Apache-2.0
// Verification: finds any changed, cut, reordered, added or missing record and names the place.
//
// What it can't find: records of a writer that lived or died unsealed, cut off behind its last
// mark; and a journal rewritten or cut together with its head file by somebody who may write it.
// The second is found against a head kept elsewhere (`expected_head`).
#ifndef SOMA_AUDIT_VERIFY_H_
#define SOMA_AUDIT_VERIFY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain.h"
#include "audit/layout.h"
#include "base/result.h"

namespace soma::audit {

struct Finding {
  std::string file;  // relative to the journal's directory
  std::optional<std::uint64_t> segment;
  std::optional<std::uint64_t> record;       // n of the first record that is wrong or missing
  std::optional<std::uint64_t> byte_offset;  // where it begins, or should begin
  std::string what;
};

struct VerifyReport {
  std::vector<Finding> faults;
  std::vector<Finding> notes;  // what a crash explains
  std::uint64_t segments = 0;
  std::uint64_t records = 0;
  std::uint64_t head_lines = 0;
  Digest head{};  // of the last good line

  bool ok() const { return faults.empty(); }
};

// Where the verifier gets its bytes, so that it needs no disk.
struct JournalSource {
  Listing listing;
  std::vector<std::string> heads;  // contents in order, the current one last
  std::function<Result<std::string>(std::uint64_t segment)> read_segment;
  // True while somebody writes it: a torn end then is a write under way.
  std::function<bool(std::uint64_t segment)> is_live;
};

VerifyReport VerifySource(const JournalSource& source, const std::optional<Digest>& expected_head);

// The same on disk. Holds the journal's lock only while it reads the head file and the names, so
// writers may go on. A read-only copy works. Errors are those of reading; findings are no errors.
Result<VerifyReport> VerifyJournal(const std::string& directory,
                                   const std::optional<Digest>& expected_head);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_VERIFY_H_
