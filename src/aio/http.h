// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as the faces of the API see it: heads as plain data, bodies as bounded reads, answers
// whole or streamed. Boost.Beast does the parsing and stays in http_parser.cc.
//
// A session serves one connection: one exchange after the other (no pipelining ahead of the
// answer), keep-alive until the client leaves. Limits: a head of kHeadSizeMax; a body by its
// reader; a head must arrive whole within kHeadTimeout of its first byte, a body must not stall
// longer than kBodyStallMax, and a client must take its answer as fast.
#ifndef SOMA_AIO_HTTP_H_
#define SOMA_AIO_HTTP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/result.h"

namespace soma::aio {

inline constexpr std::size_t kHeadSizeMax = std::size_t{32} * 1024;
inline constexpr std::chrono::seconds kHeadTimeout{30};
inline constexpr std::chrono::seconds kBodyStallMax{60};
// SDKs reuse idle connections after minutes; one that is closed early shows up as a flaky failure.
inline constexpr std::chrono::minutes kIdleMax{15};

struct HttpHeaders {
  std::vector<std::pair<std::string, std::string>> fields;  // in order, names as sent

  // The first field of that name, any case.
  const std::string* Find(std::string_view name) const;
  std::string_view Get(std::string_view name) const;  // "" when absent
  void Add(std::string_view name, std::string_view value);
  void Remove(std::string_view name);
};

struct HttpHead {
  std::string method;  // requests
  std::string target;
  int status = 0;  // answers
  std::string reason;
  HttpHeaders headers;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool chunked = false;
  std::optional<std::uint64_t> content_length;
  bool upgrade = false;  // Connection: upgrade
};

// Reads heads and bodies from a stream, whose bytes it buffers. One thread of control at a time.
class HttpReader {
 public:
  enum class Kind : std::uint8_t { kRequest, kResponse };
  HttpReader(ByteStream& stream, Kind kind, std::chrono::nanoseconds body_stall_max);
  HttpReader(ByteStream& stream, Kind kind);  // kBodyStallMax
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  // kUnavailable when the other side left between two messages; kInvalidArgument for what is no
  // HTTP; kOutOfRange when the head is too large. `no_body`: the answer to a HEAD request.
  Task<HttpHead> ReadHead(bool no_body = false);
  // 0 at the end of the body.
  Task<std::size_t> ReadBody(std::span<std::uint8_t> out);
  // The whole body; kOutOfRange beyond `size_max`, at once when its head says so.
  Task<std::string> ReadWholeBody(std::size_t size_max);
  bool body_done() const;
  // The last body stopped coming: nothing can follow it.
  bool body_stalled() const;
  // Bytes that were read and belong to what follows; for a connection that stops being HTTP.
  Bytes TakeBuffered();

 private:
  struct State;
  Task<void> Fill(std::chrono::nanoseconds timeout);
  ByteStream& stream_;
  std::chrono::nanoseconds body_stall_max_;
  std::unique_ptr<State> state_;
};

// "HTTP/1.1 200 OK\r\n…\r\n\r\n". Control characters in values become spaces.
std::string WriteResponseHead(int status, const HttpHeaders& headers);
std::string WriteRequestHead(const HttpHead& head);
std::string_view HttpReason(int status);

// One request and its answer.
class HttpExchange {
 public:
  HttpExchange(Loop& loop, ByteStream& stream, HttpReader& reader, HttpHead head);
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  const HttpHead& head() const { return head_; }
  HttpReader& body() { return reader_; }
  ByteStream& stream() { return stream_; }
  Loop& loop() { return loop_; }
  // Answers of the same kind get these too (CORS).
  HttpHeaders& common_headers() { return common_headers_; }

  // A whole answer. Nothing but 1xx, 204 and 304 goes without Content-Length.
  Task<void> Respond(int status, std::string_view content_type, std::string_view body,
                     HttpHeaders headers = {});
  // A streamed one: head, pieces, end. With `length` it is not chunked.
  Task<void> StartStream(int status, std::string_view content_type,
                         std::optional<std::uint64_t> length = std::nullopt,
                         HttpHeaders headers = {});
  Task<void> WritePiece(std::string_view piece);
  Task<void> FinishStream();
  // The client sees its connection reset.
  void Reset();
  // The connection has become something else (a tunnel) and ends with this exchange.
  void Detach() { detached_ = true; }

  bool answered() const { return answered_; }
  // Whether another request may follow on this connection.
  bool reusable() const;

 private:
  Task<void> WriteHead(int status, HttpHeaders headers);

  Loop& loop_;
  ByteStream& stream_;
  HttpReader& reader_;
  HttpHead head_;
  HttpHeaders common_headers_;
  bool answered_ = false;
  bool finished_ = false;
  bool chunked_ = false;
  bool reset_ = false;
  bool detached_ = false;
};

// Answers exchanges; must answer each (or Reset it).
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual Job Handle(HttpExchange& exchange) = 0;
};

// Serves one connection until it ends.
Job ServeHttp(Loop& loop, std::unique_ptr<ByteStream> stream, HttpHandler& handler);

}  // namespace soma::aio

#endif  // SOMA_AIO_HTTP_H_
