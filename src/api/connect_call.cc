// SPDX-License-Identifier: Apache-2.0
#include "api/connect_call.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/connect.h"
#include "parse/json.h"

namespace soma::api {

using parse::Json;

namespace {

constexpr std::size_t kRequestSizeMax = std::size_t{4} << 20;
constexpr std::string_view kStreamType = "application/connect+json";

Json ErrorShape(const Error& error) {
  Json shape = Json::MakeObject();
  shape.Set("code", Json(parse::ConnectCodeFor(error.code()).name));
  shape.Set("message", Json(error.message()));
  return shape;
}

}  // namespace

aio::Task<Json> ReadConnectRequest(aio::HttpExchange& exchange) {
  const std::string_view type = exchange.head().headers.Get("content-type");
  SOMA_CO_ASSIGN(const std::string body, co_await exchange.body().ReadWholeBody(kRequestSizeMax));
  std::string_view text = body;
  if (type.starts_with(kStreamType)) {
    SOMA_CO_ASSIGN(text, parse::ReadOnlyEnvelope(body));
  } else if (!type.starts_with("application/json")) {
    co_return Fail(Errc::kInvalidArgument, "only the JSON encoding is supported");
  }
  if (text.empty()) co_return Json::MakeObject();
  SOMA_CO_ASSIGN(Json message, parse::ParseJson(text, {.bytes_max = kRequestSizeMax}));
  if (!message.is_object()) co_return Fail(Errc::kInvalidArgument, "the message is no object");
  co_return message;
}

aio::Task<void> RespondConnectError(aio::HttpExchange& exchange, const Error& error) {
  const int status = exchange.body().body_stalled() ? HttpStatusFor(exchange, error)
                                                    : parse::ConnectCodeFor(error.code()).status;
  const std::string body = ErrorShape(error).Write();
  co_return co_await exchange.Respond(status, "application/json", body);
}

std::optional<std::chrono::milliseconds> ConnectTimeout(const aio::HttpHeaders& headers) {
  constexpr std::int64_t kWeek = std::int64_t{7} * 24 * 3600 * 1000;
  const auto value = ParseInt<std::int64_t>(headers.Get("connect-timeout-ms"));
  if (!value || *value <= 0) return std::nullopt;
  return std::chrono::milliseconds(std::min(*value, kWeek));
}

std::chrono::seconds KeepaliveInterval(const aio::HttpHeaders& headers) {
  constexpr std::chrono::seconds kDefault{90};
  const auto value = ParseInt<std::int64_t>(headers.Get("keepalive-ping-interval"));
  if (!value || *value < 1 || *value > 3600) return kDefault;
  return std::chrono::seconds(*value);
}

aio::Task<void> ConnectStream::Begin() {
  if (exchange_.answered()) co_return Status();
  co_return co_await exchange_.StartStream(200, kStreamType);
}

aio::Task<void> ConnectStream::Send(const Json& message) {
  const std::string envelope = parse::WriteEnvelope(0, message.Write());
  SOMA_CO_TRY(co_await Begin());
  co_return co_await exchange_.WritePiece(envelope);
}

aio::Task<void> ConnectStream::End() {
  const std::string envelope = parse::WriteEnvelope(parse::kConnectEndStream, "{}");
  SOMA_CO_TRY(co_await Begin());
  SOMA_CO_TRY(co_await exchange_.WritePiece(envelope));
  co_return co_await exchange_.FinishStream();
}

aio::Task<void> ConnectStream::EndWithError(const Error& error) {
  Json trailer = Json::MakeObject();
  trailer.Set("error", ErrorShape(error));
  const std::string envelope = parse::WriteEnvelope(parse::kConnectEndStream, trailer.Write());
  SOMA_CO_TRY(co_await Begin());
  SOMA_CO_TRY(co_await exchange_.WritePiece(envelope));
  co_return co_await exchange_.FinishStream();
}

}  // namespace soma::api
