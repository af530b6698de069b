// SPDX-License-Identifier: Apache-2.0
#include "aio/http_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "aio/http.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::aio {
namespace {

namespace http = boost::beast::http;

std::unexpected<Error> Failure(const boost::system::error_code& ec) {
  if (ec == http::error::header_limit || ec == http::error::body_limit) {
    return Fail(Errc::kOutOfRange, "the HTTP message is too large");
  }
  return Fail(Errc::kInvalidArgument, StrCat("bad HTTP message: ", ec.message()));
}

// What the parser accepts and another one on the way may have read differently: then nothing after
// this head can be trusted to begin where we think (RFC 9112 §6.1, §3.2).
template <typename Fields>
Status CheckRequestHead(const Fields& fields, bool is_http_1_0) {
  const auto encodings = fields.count(http::field::transfer_encoding);
  const bool is_plain =
      encodings == 1 && boost::beast::iequals(fields[http::field::transfer_encoding], "chunked");
  if (encodings != 0 && (is_http_1_0 || !is_plain)) {
    return Fail(Errc::kInvalidArgument, "bad HTTP message: Transfer-Encoding is not just chunked");
  }
  if (fields.count(http::field::host) > 1) {
    return Fail(Errc::kInvalidArgument, "bad HTTP message: more than one Host");
  }
  return {};
}

template <bool kIsRequest>
class BeastParser final : public Http1Parser {
 public:
  explicit BeastParser(bool no_body) {
    parser_.header_limit(static_cast<std::uint32_t>(kHeadSizeMax));
    // Readers bound bodies themselves, by what they are for.
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser_.eager(false);
    if (no_body) parser_.skip(true);
  }

  Result<std::size_t> FeedHead(ByteView bytes) override {
    boost::system::error_code ec;
    const std::size_t used = parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
    if (ec == http::error::need_more) ec = {};
    if (ec) return Failure(ec);
    if constexpr (kIsRequest) {
      if (parser_.is_header_done()) {
        SOMA_TRY(CheckRequestHead(parser_.get(), parser_.get().version() == 10));
      }
    }
    return used;
  }

  bool head_done() const override { return parser_.is_header_done(); }
  bool done() const override { return parser_.is_done(); }

  HttpHead TakeHead() override {
    const auto& message = parser_.get();
    HttpHead head;
    if constexpr (kIsRequest) {
      head.method = std::string(message.method_string());
      head.target = std::string(message.target());
    } else {
      head.status = static_cast<int>(message.result_int());
      head.reason = std::string(message.reason());
    }
    for (const auto& field : message) {
      head.headers.Add({field.name_string().data(), field.name_string().size()},
                       {field.value().data(), field.value().size()});
    }
    head.http_1_0 = message.version() == 10;
    head.keep_alive = parser_.keep_alive();
    head.chunked = parser_.chunked();
    head.upgrade = parser_.upgrade();
    if (const auto length = parser_.content_length()) head.content_length = *length;
    return head;
  }

  Result<BodyStep> FeedBody(ByteView bytes, std::span<std::uint8_t> out) override {
    auto& body = parser_.get().body();
    body.data = out.data();
    body.size = out.size();
    body.more = true;
    boost::system::error_code ec;
    BodyStep step;
    step.used = parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
    if (ec == http::error::need_buffer || ec == http::error::need_more) ec = {};
    if (ec) return Failure(ec);
    step.written = out.size() - body.size;
    return step;
  }

  Status FeedEnd() override {
    boost::system::error_code ec;
    parser_.put_eof(ec);
    if (ec) return Failure(ec);
    return {};
  }

 private:
  http::parser<kIsRequest, http::buffer_body> parser_;
};

}  // namespace

std::unique_ptr<Http1Parser> Http1Parser::Create(HttpReader::Kind kind, bool no_body) {
  if (kind == HttpReader::Kind::kRequest) return std::make_unique<BeastParser<true>>(no_body);
  return std::make_unique<BeastParser<false>>(no_body);
}

}  // namespace soma::aio
