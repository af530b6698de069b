// SPDX-License-Identifier: Apache-2.0
// The chained line, which the head file and the segments share:
//
//   {"n":N,"prev":"H",MEMBERS,"hash":"H"}\n
//
// N counts from 0 in each file. `hash` is the SHA-256 of the line's bytes before `,"hash"`; `prev`
// is the hash of the line before. A changed byte breaks the line's own hash, a recomputed one the
// next line's prev, so a fault is named where it is. Checked by hand:
//
//   sed -n 5p FILE | sed 's/,"hash":"[0-9a-f]*"}$//' | tr -d '\n' | sha256sum
//
// Pure: no I/O. Reads untrusted bytes.
#ifndef SOMA_AUDIT_CHAIN_H_
#define SOMA_AUDIT_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "crypto/hash.h"

namespace soma::audit {

using crypto::Digest;

// A longer line is a fault. An event of the largest texts, each byte escaped to six, stays below.
inline constexpr std::size_t kLineBytesMax = std::size_t{256} * 1024;

struct Line {
  std::uint64_t number = 0;
  Digest previous{};
  std::string_view members;  // lives as long as the text it was read from
  Digest hash{};
};

struct FramedLine {
  std::string text;  // with its newline
  Digest hash{};
};

FramedLine FrameLine(std::uint64_t number, const Digest& previous, std::string_view members);

// One line without its newline. kInvalidArgument: not of this shape; kDataLoss: its hash is wrong.
// The answer refers into `text`, which therefore may not be a temporary.
Result<Line> ParseLine(std::string_view text);
Result<Line> ParseLine(std::string&& text) = delete;

std::optional<Digest> ParseDigest(std::string_view hex);

// What is wrong at one place of a file.
struct ChainFault {
  std::uint64_t record = 0;       // the n that belongs there
  std::uint64_t byte_offset = 0;  // where its line begins
  std::string what;
};

struct ChainSummary {
  std::uint64_t records = 0;  // whole and good lines from the start
  std::uint64_t bytes = 0;    // their bytes
  Digest first_previous{};    // the first line's prev; zeros when there is none
  Digest tail{};              // the last one's hash; zeros when there is none
  std::uint64_t torn = 0;     // bytes after the last newline: a write that its writer's death cut
  std::optional<ChainFault> fault;  // the first one; the scan stops there
};

// Reads a whole file's lines from its start. `first_number` is the n that the first line must
// have; `visit` sees every good line, with its byte offset, and may return an error text, which
// becomes the fault.
using LineVisitor = std::function<std::optional<std::string>(const Line&, std::uint64_t)>;
ChainSummary ScanChain(std::string_view content, std::uint64_t first_number,
                       const LineVisitor& visit = {});

}  // namespace soma::audit

#endif  // SOMA_AUDIT_CHAIN_H_
