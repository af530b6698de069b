// SPDX-License-Identifier: Apache-2.0
// Connect JSON calls (https://connectrpc.com/docs/protocol) as the envd face uses them.
#ifndef SOMA_API_CONNECT_CALL_H_
#define SOMA_API_CONNECT_CALL_H_

#include <chrono>
#include <optional>
#include <string_view>

#include "aio/http.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/json.h"

namespace soma::api {

// The request message of a unary call or of a server-streaming one, by Content-Type.
aio::Task<parse::Json> ReadConnectRequest(aio::HttpExchange& exchange);

// {"code","message"} with the protocol's HTTP status.
aio::Task<void> RespondConnectError(aio::HttpExchange& exchange, const Error& error);

// `connect-timeout-ms`; nullopt when absent or 0. At most a week.
std::optional<std::chrono::milliseconds> ConnectTimeout(const aio::HttpHeaders& headers);
// `keepalive-ping-interval` in seconds, else E2B's default.
std::chrono::seconds KeepaliveInterval(const aio::HttpHeaders& headers);

// A server stream: head once, then messages, then the trailer without which a client takes the
// stream for broken.
class ConnectStream {
 public:
  explicit ConnectStream(aio::HttpExchange& exchange) : exchange_(exchange) {}
  aio::Task<void> Send(const parse::Json& message);
  aio::Task<void> End();
  // Errors before the first message travel in the trailer too, with status 200.
  aio::Task<void> EndWithError(const Error& error);

 private:
  aio::Task<void> Begin();
  aio::HttpExchange& exchange_;
};

}  // namespace soma::api

#endif  // SOMA_API_CONNECT_CALL_H_
