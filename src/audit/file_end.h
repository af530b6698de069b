// SPDX-License-Identifier: Apache-2.0
// The end of a chained file, without reading the rest of it.
#ifndef SOMA_AUDIT_FILE_END_H_
#define SOMA_AUDIT_FILE_END_H_

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::audit {

struct FileEnd {
  std::uint64_t whole_bytes = 0;  // up to and with the last newline
  std::uint64_t torn = 0;         // bytes after it
  std::string last_line;          // the last whole line, without its newline; empty if none
};

// kDataLoss when the last line is longer than any line may be.
Result<FileEnd> ReadFileEnd(const Fd& file);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_FILE_END_H_
