// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "api/control.h"
#include "api/envd.h"
#include "api/guard.h"
#include "api/port_face.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/http_target.h"
#include "sandbox/sandbox.h"

namespace soma::api {
namespace {

// Headers win over the host: with one shared host they are all there is.
std::optional<parse::SandboxPort> RouteOf(const aio::HttpHeaders& headers) {
  const std::string* id = headers.Find("e2b-sandbox-id");
  if (id != nullptr) {
    const std::string* port = headers.Find("e2b-sandbox-port");
    const std::string envd = StrCat(kEnvdPort);
    return parse::ParseSandboxHeaders(*id, port == nullptr ? envd : *port);
  }
  const auto host = parse::ParseHost(headers.Get("host"));
  return host ? parse::ParseSandboxHost(host->host) : std::nullopt;
}

bool IsSignedUrl(const parse::HttpTarget& target) {
  return target.path == "/files" && target.Find("signature") != nullptr;
}

}  // namespace

Api::Api(const ApiParts& parts, ApiOptions options) : parts_(parts), options_(std::move(options)) {
  if (!options_.domain.empty()) options_.hosts.push_back(options_.domain);
}

aio::Job Api::Handle(aio::HttpExchange& exchange) {
  const Status done = co_await Dispatch(exchange);
  if (exchange.answered()) co_return;
  // Nothing was said: either the client is gone, which this finds out, or a face failed early.
  if (done) {
    (void)co_await RespondError(exchange, 500, "no answer");
  } else {
    (void)co_await RespondError(exchange, done.error());
  }
}

void Api::RecordRefusal(const aio::HttpExchange& exchange, const Error& why) {
  const std::string_view target = exchange.head().target;
  // Without the query, which may hold a signature.
  parts_.manager.RecordRefusal(
      StrCat(exchange.head().method, " ", target.substr(0, target.find('?'))), why);
}

aio::Task<void> Api::Dispatch(aio::HttpExchange& exchange) {
  const aio::HttpHead& head = exchange.head();
  const auto route = RouteOf(head.headers);
  if (route && route->port != kEnvdPort) {
    PortFace face(parts_.manager);
    co_return co_await face.Handle(exchange, *route);
  }
  const Status guarded =
      CheckHostAndOrigin(head.headers, {.hosts = options_.hosts, .origins = options_.origins});
  if (!guarded) {
    RecordRefusal(exchange, guarded.error());
    co_return co_await RespondError(exchange, guarded.error());
  }
  if (const std::string* origin = head.headers.Find("origin")) {
    exchange.common_headers().Add("Access-Control-Allow-Origin", *origin);
    exchange.common_headers().Add("Access-Control-Expose-Headers", "X-Next-Token, X-Total-Running");
  }
  SOMA_CO_ASSIGN(parse::HttpTarget target, parse::ParseTarget(head.target));
  if (route || IsSignedUrl(target)) {
    EnvdFace face(parts_.manager);
    co_return co_await face.Handle(exchange, std::move(target),
                                   route ? route->sandbox_id : std::string());
  }
  if (target.path == "/health") co_return co_await exchange.Respond(200, "text/plain", "ok\n");
  const std::string* key = head.headers.Find("x-api-key");
  const Result<std::string> tenant =
      key == nullptr ? Fail(Errc::kUnauthenticated, "the header X-API-KEY is missing")
                     : parts_.keys.TenantOf(*key);
  if (!tenant) {
    RecordRefusal(exchange, tenant.error());
    co_return co_await RespondError(exchange, tenant.error());
  }
  ControlFace face(parts_.manager, options_.domain);
  co_return co_await face.Handle(exchange, std::move(target), *tenant);
}

}  // namespace soma::api
