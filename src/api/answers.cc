// SPDX-License-Identifier: Apache-2.0
#include "api/answers.h"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "aio/http.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"

namespace soma::api {

using parse::Json;

int HttpStatusFor(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kOutOfRange:
      return 413;
    case Errc::kUnauthenticated:
      return 401;
    case Errc::kPermissionDenied:
      return 403;
    case Errc::kNotFound:
      return 404;
    case Errc::kAlreadyExists:
    case Errc::kFailedPrecondition:
      return 409;
    case Errc::kResourceExhausted:
      return 429;
    case Errc::kCancelled:
      return 499;
    case Errc::kUnimplemented:
      return 501;
    case Errc::kUnavailable:
      return 503;
    case Errc::kDeadlineExceeded:
      return 504;
    case Errc::kDataLoss:
    case Errc::kInternal:
      return 500;
  }
  return 500;
}

int HttpStatusFor(aio::HttpExchange& exchange, const Error& error) {
  const bool late = error.code() == Errc::kDeadlineExceeded;
  // It is the client who was late, not somebody behind us.
  if (late && exchange.body().body_stalled()) return 408;
  // Not 429: SDKs take that for "too often", and come again.
  if (error.errno_value() == ENOSPC || error.errno_value() == EDQUOT) return 507;
  return HttpStatusFor(error.code());
}

aio::Task<void> RespondJson(aio::HttpExchange& exchange, int status, const Json& body,
                            aio::HttpHeaders headers) {
  const std::string text = body.Write();
  co_return co_await exchange.Respond(status, "application/json", text, std::move(headers));
}

aio::Task<void> RespondError(aio::HttpExchange& exchange, int status, std::string_view message) {
  Json body = Json::MakeObject();
  body.Set("code", Json(status));
  body.Set("message", Json(message));
  const std::string text = body.Write();
  co_return co_await exchange.Respond(status, "application/json", text);
}

aio::Task<void> RespondError(aio::HttpExchange& exchange, const Error& error) {
  const std::string message = error.message();
  co_return co_await RespondError(exchange, HttpStatusFor(exchange, error), message);
}

aio::Task<void> RespondNoSandbox(aio::HttpExchange& exchange, std::string_view sandbox_id) {
  Json body = Json::MakeObject();
  body.Set("sandboxId", Json(sandbox_id));
  body.Set("message", Json("The sandbox was not found"));
  body.Set("code", Json(502));
  const std::string text = body.Write();
  co_return co_await exchange.Respond(502, "application/json", text);
}

aio::Task<Json> ReadJsonBody(aio::HttpExchange& exchange) {
  constexpr std::size_t kBodyMax = std::size_t{1} << 20;
  SOMA_CO_ASSIGN(const std::string text, co_await exchange.body().ReadWholeBody(kBodyMax));
  if (text.empty()) co_return Json::MakeObject();
  SOMA_CO_ASSIGN(Json body, parse::ParseJson(text, {.bytes_max = kBodyMax}));
  if (body.is_null()) co_return Json::MakeObject();
  if (!body.is_object()) {
    co_return Fail(Errc::kInvalidArgument,
                   StrCat("the body must be an object, not ", body.KindName()));
  }
  co_return body;
}

}  // namespace soma::api
