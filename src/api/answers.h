// SPDX-License-Identifier: Apache-2.0
// The shapes of answers that all faces share.
#ifndef SOMA_API_ANSWERS_H_
#define SOMA_API_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "aio/http.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/json.h"

namespace soma::api {

// Of the control face and of envd's plain endpoints.
int HttpStatusFor(Errc code);
// The same for an error of answering this request, of which more is known.
int HttpStatusFor(aio::HttpExchange& exchange, const Error& error);

aio::Task<void> RespondJson(aio::HttpExchange& exchange, int status, const parse::Json& body,
                            aio::HttpHeaders headers = {});
// {"code": status, "message": …}: SDKs read the number from the body, others from the status line.
aio::Task<void> RespondError(aio::HttpExchange& exchange, int status, std::string_view message);
aio::Task<void> RespondError(aio::HttpExchange& exchange, const Error& error);

// The proxy's own words for a sandbox that is unknown, dead or not answering: SDKs take the 502 for
// "it is gone".
aio::Task<void> RespondNoSandbox(aio::HttpExchange& exchange, std::string_view sandbox_id);

// The JSON object of a control request; an empty body is an empty object. Bounded by 1 MiB.
aio::Task<parse::Json> ReadJsonBody(aio::HttpExchange& exchange);

}  // namespace soma::api

#endif  // SOMA_API_ANSWERS_H_
