// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aio/http.h"
#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::aio {
namespace {

// A body that nobody read is read away up to this, so that the connection can be used again; beyond
// it the connection is closed.
constexpr std::size_t kDrainMax = std::size_t{256} * 1024;

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  out += "\r\n";
}

// RFC 9110 section 6.4.1: these never have a body.
bool HasNoBody(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

std::string_view HttpReason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 507:
      return "Insufficient Storage";
    default:
      return "Status";
  }
}

std::string WriteResponseHead(int status, const HttpHeaders& headers) {
  std::string out = StrCat("HTTP/1.1 ", status, " ", HttpReason(status), "\r\n");
  for (const auto& [name, value] : headers.fields) AppendField(out, name, value);
  out += "\r\n";
  return out;
}

std::string WriteRequestHead(const HttpHead& head) {
  std::string out = StrCat(head.method, " ", head.target, " HTTP/1.1\r\n");
  for (const auto& [name, value] : head.headers.fields) AppendField(out, name, value);
  out += "\r\n";
  return out;
}

HttpExchange::HttpExchange(Loop& loop, ByteStream& stream, HttpReader& reader, HttpHead head)
    : loop_(loop), stream_(stream), reader_(reader), head_(std::move(head)) {}

Task<void> HttpExchange::WriteHead(int status, HttpHeaders headers) {
  SOMA_CHECK(!answered_);
  answered_ = true;
  for (const auto& [name, value] : common_headers_.fields) headers.Add(name, value);
  if (!reusable()) headers.Add("Connection", "close");
  const std::string text = WriteResponseHead(status, headers);
  stream_.SetWriteDeadline(kBodyStallMax);
  co_return co_await stream_.Write(AsBytes(text));
}

Task<void> HttpExchange::Respond(int status, std::string_view content_type, std::string_view body,
                                 HttpHeaders headers) {
  SOMA_CHECK(!answered_);
  if (!body.empty()) headers.Add("Content-Type", content_type);
  if (!HasNoBody(status)) headers.Add("Content-Length", StrCat(body.size()));
  for (const auto& [name, value] : common_headers_.fields) headers.Add(name, value);
  answered_ = true;
  finished_ = true;
  if (!reusable()) headers.Add("Connection", "close");
  std::string text = WriteResponseHead(status, headers);
  if (head_.method != "HEAD") text += body;
  stream_.SetWriteDeadline(kBodyStallMax);
  co_return co_await stream_.Write(AsBytes(text));
}

Task<void> HttpExchange::StartStream(int status, std::string_view content_type,
                                     std::optional<std::uint64_t> length, HttpHeaders headers) {
  if (!content_type.empty()) headers.Add("Content-Type", content_type);
  if (length) {
    headers.Add("Content-Length", StrCat(*length));
  } else if (!HasNoBody(status) && !head_.http_1_0) {
    headers.Add("Transfer-Encoding", "chunked");
    chunked_ = head_.method != "HEAD";
  } else if (head_.http_1_0) {
    // Without chunks only the end of the connection ends the body.
    head_.keep_alive = false;
  }
  co_return co_await WriteHead(status, std::move(headers));
}

Task<void> HttpExchange::WritePiece(std::string_view piece) {
  if (piece.empty() || head_.method == "HEAD") co_return Status();
  stream_.SetWriteDeadline(kBodyStallMax);
  if (!chunked_) co_return co_await stream_.Write(AsBytes(piece));
  std::array<char, 16> digits{};
  const char* end =
      std::to_chars(digits.data(), digits.data() + digits.size(), piece.size(), 16).ptr;
  // One write a piece: a chunk head that travels alone costs the client a wake-up.
  const std::string text = StrCat(std::string_view(digits.data(), end), "\r\n", piece, "\r\n");
  co_return co_await stream_.Write(AsBytes(text));
}

Task<void> HttpExchange::FinishStream() {
  finished_ = true;
  if (!chunked_) co_return Status();
  stream_.SetWriteDeadline(kBodyStallMax);
  co_return co_await stream_.Write(AsBytes("0\r\n\r\n"));
}

void HttpExchange::Reset() {
  reset_ = true;
  stream_.Reset();
}

bool HttpExchange::reusable() const {
  return !reset_ && !detached_ && head_.keep_alive && !reader_.body_stalled();
}

namespace {

// True when the connection can take the next request.
Task<bool> Drain(HttpReader& reader) {
  auto buffer = std::make_unique<std::array<std::uint8_t, std::size_t{16} * 1024>>();
  std::size_t total = 0;
  while (!reader.body_done()) {
    SOMA_CO_ASSIGN(const std::size_t size, co_await reader.ReadBody(*buffer));
    total += size;
    if (total > kDrainMax) co_return false;
    if (size == 0) break;
  }
  co_return true;
}

int StatusOfBadHead(const Error& error) {
  switch (error.code()) {
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kOutOfRange:
      return 431;
    case Errc::kDeadlineExceeded:
      return 408;
    default:
      return 0;
  }
}

}  // namespace

Job ServeHttp(Loop& loop, std::unique_ptr<ByteStream> stream, HttpHandler& handler) {
  HttpReader reader(*stream, HttpReader::Kind::kRequest);
  for (;;) {
    auto head = co_await reader.ReadHead();
    if (!head) {
      const int status = StatusOfBadHead(head.error());
      if (status != 0) {
        const std::string body =
            StrCat(R"({"code":)", status, R"(,"message":")", HttpReason(status), "\"}");
        HttpHeaders headers;
        headers.Add("Content-Type", "application/json");
        headers.Add("Content-Length", StrCat(body.size()));
        headers.Add("Connection", "close");
        const std::string text = WriteResponseHead(status, headers) + body;
        stream->SetWriteDeadline(std::chrono::seconds(5));
        (void)co_await stream->Write(AsBytes(text));
      }
      break;
    }
    if (head->headers.Get("expect") == "100-continue") {
      (void)co_await stream->Write(AsBytes("HTTP/1.1 100 Continue\r\n\r\n"));
    }
    HttpExchange exchange(loop, *stream, reader, *std::move(head));
    co_await handler.Handle(exchange);
    if (!exchange.reusable() || !exchange.answered()) break;
    const auto drained = co_await Drain(reader);
    if (!drained || !*drained) break;
  }
  stream->Close();
}

}  // namespace soma::aio
