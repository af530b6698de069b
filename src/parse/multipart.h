// SPDX-License-Identifier: Apache-2.0
// MultipartReader: takes a multipart/form-data body (RFC 7578, RFC 2046 section 5.1) apart while it
// arrives. I/O-free; keeps at most one chunk and one part header. Untrusted input.
//
//   reader.Feed(chunk);
//   while (auto event = reader.Next()) ...;     // until nullopt, then the next chunk
//   if (!reader.error().empty()) ...;
//   at the end of the body: reader.finished() must be true.
#ifndef SOMA_PARSE_MULTIPART_H_
#define SOMA_PARSE_MULTIPART_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace soma::parse {

// RFC 2046 allows a boundary of at most 70 characters.
inline constexpr std::size_t kBoundarySizeMax = 70;
inline constexpr std::size_t kPartHeaderSizeMax = 16 * std::size_t{1024};

// The boundary of a Content-Type value. kInvalidArgument if it is no multipart/form-data with one.
Result<std::string> MultipartBoundary(std::string_view content_type);

struct MultipartEvent {
  enum class Kind : std::uint8_t { kPart, kData, kPartEnd };
  Kind kind = Kind::kData;
  std::string name;      // kPart: the field
  std::string filename;  // kPart: as sent, "" if none
  std::string data;      // kData
};

class MultipartReader {
 public:
  explicit MultipartReader(std::string_view boundary);

  void Feed(std::string_view chunk);
  std::optional<MultipartEvent> Next();
  // Empty, or why the body is no multipart body. Nothing follows after it.
  const std::string& error() const { return error_; }
  // The closing delimiter was seen; what comes after it is ignored.
  bool finished() const { return state_ == State::kDone; }

 private:
  enum class State : std::uint8_t { kPreamble, kHeader, kData, kAfterDelimiter, kDone, kFailed };

  std::optional<MultipartEvent> Stop(std::string why);
  // Each: true when it consumed something or made an event.
  bool StepPreamble();
  bool StepAfterDelimiter();
  bool StepHeader(std::optional<MultipartEvent>& event);
  bool StepData(std::optional<MultipartEvent>& event);

  std::string delimiter_;  // CRLF "--" boundary
  std::string input_;
  State state_ = State::kPreamble;
  std::string error_;
};

}  // namespace soma::parse

#endif  // SOMA_PARSE_MULTIPART_H_
