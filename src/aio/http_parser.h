// SPDX-License-Identifier: Apache-2.0
// Http1Parser: an incremental HTTP/1.1 parser over Boost.Beast's, without its headers. For this
// room; http.h is what others use. I/O-free, untrusted input.
#ifndef SOMA_AIO_HTTP_PARSER_H_
#define SOMA_AIO_HTTP_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "aio/http.h"
#include "base/bytes.h"
#include "base/result.h"

namespace soma::aio {

class Http1Parser {
 public:
  virtual ~Http1Parser() = default;
  static std::unique_ptr<Http1Parser> Create(HttpReader::Kind kind, bool no_body);

  // Takes bytes of the head; gives how many were used. When it needs more before it can use any,
  // 0: call again with the same bytes and more behind them.
  virtual Result<std::size_t> FeedHead(ByteView bytes) = 0;
  virtual bool head_done() const = 0;
  virtual HttpHead TakeHead() = 0;

  struct BodyStep {
    std::size_t used = 0;     // of `bytes`
    std::size_t written = 0;  // to `out`
  };
  virtual Result<BodyStep> FeedBody(ByteView bytes, std::span<std::uint8_t> out) = 0;
  // The other side has finished sending; an error if the message is cut.
  virtual Status FeedEnd() = 0;
  virtual bool done() const = 0;
};

}  // namespace soma::aio

#endif  // SOMA_AIO_HTTP_PARSER_H_
