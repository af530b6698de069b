// SPDX-License-Identifier: Apache-2.0
#include "api/envd.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/base64.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"
#include "sandbox/manager.h"
#include "sandbox/sandbox.h"

namespace soma::api {
namespace {

using parse::Json;

constexpr std::string_view kProcessPrefix = "/process.Process/";
constexpr std::string_view kFilesystemPrefix = "/filesystem.Filesystem/";
// E2B's exact words; a test of theirs compares them.
constexpr std::string_view kUnauthorized =
    "unauthorized access, please provide a valid access token or method signing if supported";

// "Basic base64(user:)" on RPCs, `username=` on /files.
std::string UserOf(const aio::HttpExchange& exchange, const parse::HttpTarget& target) {
  if (const std::string* name = target.Find("username")) return *name;
  const std::string_view value = exchange.head().headers.Get("authorization");
  if (!value.starts_with("Basic ")) return {};
  const auto decoded = parse::Base64Decode(value.substr(6));
  if (!decoded) return {};
  const std::string_view pair = AsText(*decoded);
  return std::string(pair.substr(0, pair.find(':')));
}

sandbox::FileSignature ClaimOf(std::string_view method, const parse::HttpTarget& target) {
  const auto get = [&target](std::string_view name) {
    const std::string* found = target.Find(name);
    return found == nullptr ? std::string() : *found;
  };
  sandbox::FileSignature claim{.path = get("path"),
                               .operation = method == "GET" ? "read" : "write",
                               .user = get("username"),
                               .signature = get("signature"),
                               .expiry = std::nullopt};
  if (target.Find("signature_expiration") != nullptr) claim.expiry = get("signature_expiration");
  return claim;
}

aio::Task<void> RespondMetrics(EnvdCall& call) {
  SOMA_CO_ASSIGN(const wire::Message reply,
                 co_await call.sandbox->link().Call(wire::GetStats{}, std::chrono::seconds(5)));
  const auto* stats = std::get_if<wire::Stats>(&reply);
  if (stats == nullptr) co_return Fail(Errc::kInternal, "the guest gives no statistics");
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  Json body = Json::MakeObject();
  body.Set("ts", Json(std::int64_t{std::chrono::duration_cast<std::chrono::seconds>(
                                       std::chrono::system_clock::now().time_since_epoch())
                                       .count()}));
  body.Set("cpu_count", Json(std::int64_t{stats->cpu_count}));
  const double up_us = static_cast<double>(stats->uptime_ms) * 1000.0;
  body.Set("cpu_used_pct",
           Json(up_us > 0 ? static_cast<double>(stats->cpu_used_us) * 100.0 / up_us : 0.0));
  body.Set("mem_total", Json(stats->memory_total_bytes));
  body.Set("mem_used", Json(stats->memory_used_bytes));
  body.Set("mem_cache", Json(stats->memory_cache_bytes));
  body.Set("mem_total_mib", Json(stats->memory_total_bytes / kMiB));
  body.Set("mem_used_mib", Json(stats->memory_used_bytes / kMiB));
  body.Set("disk_used", Json(stats->disk_used_bytes));
  body.Set("disk_total", Json(stats->disk_total_bytes));
  co_return co_await RespondJson(call.exchange, 200, body);
}

aio::Task<void> RespondEnvironment(EnvdCall& call) {
  Json body = Json::MakeObject();
  for (const auto& [name, value] : call.sandbox->record().environment) {
    body.Set(name, Json(value));
  }
  co_return co_await RespondJson(call.exchange, 200, body);
}

aio::Task<void> Route(EnvdCall& call) {
  const std::string_view path = call.target.path;
  const std::string_view method = call.exchange.head().method;
  if (path.starts_with(kProcessPrefix) && method == "POST") {
    co_return co_await HandleProcess(call, path.substr(kProcessPrefix.size()));
  }
  if (path.starts_with(kFilesystemPrefix) && method == "POST") {
    co_return co_await HandleFilesystem(call, path.substr(kFilesystemPrefix.size()));
  }
  if (path == "/files" && method == "GET") co_return co_await DownloadFile(call);
  if (path == "/files" && method == "POST") co_return co_await UploadFiles(call);
  if (path == "/metrics" && method == "GET") co_return co_await RespondMetrics(call);
  if (path == "/envs" && method == "GET") co_return co_await RespondEnvironment(call);
  co_return co_await RespondError(call.exchange, 404, "no such path");
}

}  // namespace

Result<std::shared_ptr<sandbox::Sandbox>> EnvdFace::Prove(
    const aio::HttpExchange& exchange, const parse::HttpTarget& target,
    std::shared_ptr<sandbox::Sandbox> sandbox) {
  const std::string* token = exchange.head().headers.Find("x-access-token");
  const bool is_files = target.path == "/files";
  const bool is_signed = is_files && target.Find("signature") != nullptr;
  if (!sandbox) {
    return manager_.FindBySignature(ClaimOf(exchange.head().method, target));
  }
  // The signature counts only where no token was given (e2b.md section 3.5).
  if (token == nullptr && is_signed) {
    SOMA_TRY(sandbox->CheckSignature(ClaimOf(exchange.head().method, target), manager_.Now()));
    return sandbox;
  }
  if (sandbox->EnvdTokenMatches(token == nullptr ? std::string_view() : *token)) return sandbox;
  if (is_files && token == nullptr) {
    return Fail(Errc::kUnauthenticated, "missing signature query parameter");
  }
  return Fail(Errc::kUnauthenticated, std::string(kUnauthorized));
}

aio::Task<void> EnvdFace::Handle(aio::HttpExchange& exchange, parse::HttpTarget target,
                                 std::string sandbox_id) {
  std::shared_ptr<sandbox::Sandbox> sandbox;
  if (!sandbox_id.empty()) {
    sandbox = manager_.FindAny(sandbox_id);
    if (!sandbox || !sandbox->alive()) co_return co_await RespondNoSandbox(exchange, sandbox_id);
    if (target.path == "/health" && exchange.head().method == "GET") {
      co_return co_await exchange.Respond(204, "", "");
    }
  }
  auto proved = Prove(exchange, target, std::move(sandbox));
  if (!proved) co_return co_await RespondError(exchange, proved.error());
  std::string user = UserOf(exchange, target);
  EnvdCall call{.exchange = exchange,
                .target = std::move(target),
                .sandbox = *std::move(proved),
                .user = std::move(user)};
  Status done = co_await Route(call);
  if (done || exchange.answered()) co_return done;
  // A sandbox that died under the request is gone, not unavailable.
  if (!call.sandbox->alive()) co_return co_await RespondNoSandbox(exchange, sandbox_id);
  co_return co_await RespondError(exchange, done.error());
}

}  // namespace soma::api
