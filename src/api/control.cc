// SPDX-License-Identifier: Apache-2.0
#include "api/control.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "api/control_shapes.h"
#include "api/create_request.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "parse/timestamp.h"
#include "sandbox/guest_calls.h"
#include "sandbox/manager.h"
#include "sandbox/record.h"
#include "sandbox/sandbox.h"

namespace soma::api {
namespace {

using parse::Json;
using std::chrono::seconds;

aio::Task<void> NotThereYet(aio::HttpExchange& exchange, std::string_view what) {
  const std::string message = StrCat(what, " is not supported by this server");
  co_return co_await RespondError(exchange, 501, message);
}

bool IsKnownButAbsent(std::string_view segment) {
  return segment == "templates" || segment == "snapshots" || segment == "volumes" ||
         segment == "secrets" || segment == "teams" || segment == "api-keys";
}

}  // namespace

aio::Task<void> ControlFace::Handle(aio::HttpExchange& exchange, parse::HttpTarget target,
                                    std::string tenant) {
  SOMA_CO_ASSIGN(Segments segments, parse::PathSegments(target.path));
  Generation version = Generation::kV1;
  if (!segments.empty() && (segments[0] == "v2" || segments[0] == "v3")) {
    version = Generation::kV2;
    segments.erase(segments.begin());
  }
  const std::string_view method = exchange.head().method;
  if (segments.empty()) co_return co_await RespondError(exchange, 404, "no such path");
  if (segments[0] == "sandboxes" && segments.size() == 1) {
    if (method == "POST") co_return co_await Create(exchange, tenant, version);
    if (method == "GET") co_return co_await List(exchange, target, tenant, version);
    co_return co_await RespondError(exchange, 405, "method not allowed");
  }
  if (segments[0] == "sandboxes") {
    co_return co_await HandleOne(exchange, target, tenant, segments, version);
  }
  if (IsKnownButAbsent(segments[0])) co_return co_await NotThereYet(exchange, segments[0]);
  co_return co_await RespondError(exchange, 404, "no such path");
}

aio::Task<void> ControlFace::HandleOne(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                                       std::string_view tenant, const Segments& segments,
                                       Generation version) {
  const std::string_view method = exchange.head().method;
  const std::string_view id = parse::CutClientId(segments[1]);
  if (!parse::IsSandboxId(id)) co_return co_await RespondError(exchange, 400, "Invalid sandbox ID");
  SOMA_CO_ASSIGN(auto sandbox, manager_.Find(tenant, id));
  if (segments.size() == 2 && method == "GET") {
    co_return co_await RespondJson(exchange, 200,
                                   DetailShape(sandbox->record(), manager_.limits(), domain_));
  }
  if (segments.size() == 2 && method == "DELETE") {
    SOMA_CO_TRY(co_await manager_.Kill(std::move(sandbox), "killed by its owner"));
    co_return co_await exchange.Respond(204, "", "");
  }
  if (segments.size() == 3 && method == "GET" && segments[2] == "metrics") {
    co_return co_await Metrics(exchange, target, std::move(sandbox));
  }
  if (segments.size() == 3 && (method == "POST" || method == "PUT")) {
    co_return co_await HandleVerb(exchange, segments[2], std::move(sandbox), version);
  }
  if (segments.size() == 3 && segments[2] == "logs")
    co_return co_await NotThereYet(exchange, "logs");
  co_return co_await RespondError(exchange, 405, "method not allowed");
}

aio::Task<void> ControlFace::HandleVerb(aio::HttpExchange& exchange, std::string_view verb,
                                        std::shared_ptr<sandbox::Sandbox> sandbox,
                                        Generation /*version*/) {
  if (verb == "connect") co_return co_await Connect(exchange, std::move(sandbox));
  if (verb == "timeout") co_return co_await SetTimeout(exchange, std::move(sandbox), "timeout");
  if (verb == "refreshes") co_return co_await SetTimeout(exchange, std::move(sandbox), "duration");
  // No sandbox is ever paused here, so there is nothing to resume.
  if (verb == "resume") {
    const std::string message = StrCat("Sandbox ", sandbox->record().id, " is already running");
    co_return co_await RespondError(exchange, 409, message);
  }
  if (verb == "network") co_return co_await SetNetwork(exchange, std::move(sandbox));
  if (verb == "pause" || verb == "fork" || verb == "snapshots") {
    co_return co_await NotThereYet(exchange, verb);
  }
  co_return co_await RespondError(exchange, 404, "no such path");
}

aio::Task<void> ControlFace::Create(aio::HttpExchange& exchange, std::string_view tenant,
                                    Generation version) {
  SOMA_CO_ASSIGN(const Json body, co_await ReadJsonBody(exchange));
  SOMA_CO_ASSIGN(sandbox::CreateRequest request, ReadCreateRequest(body, version));
  request.tenant = tenant;
  SOMA_CO_ASSIGN(const auto sandbox, co_await manager_.Create(std::move(request)));
  co_return co_await RespondJson(exchange, 201, SandboxShape(sandbox->record(), domain_));
}

aio::Task<void> ControlFace::List(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                                  std::string_view tenant, Generation version) {
  SOMA_CO_ASSIGN(ListQuery query, ReadListQuery(target));
  // The unversioned call has no pages.
  if (version == Generation::kV1) query.limit = SIZE_MAX;
  const std::vector<std::shared_ptr<sandbox::Sandbox>> sandboxes = manager_.List(tenant);
  Records records;
  records.reserve(sandboxes.size());
  for (const auto& sandbox : sandboxes) records.push_back(&sandbox->record());
  const Page page = SelectPage(std::move(records), query);
  Json list = Json::MakeArray();
  for (const auto* record : page.records) list.Append(ListedShape(*record, manager_.limits()));
  aio::HttpHeaders headers;
  if (!page.next_token.empty()) headers.Add("X-Next-Token", page.next_token);
  headers.Add("X-Total-Running", StrCat(page.total_running));
  co_return co_await RespondJson(exchange, 200, list, std::move(headers));
}

aio::Task<void> ControlFace::Connect(aio::HttpExchange& exchange,
                                     std::shared_ptr<sandbox::Sandbox> sandbox) {
  SOMA_CO_ASSIGN(const Json body, co_await ReadJsonBody(exchange));
  SOMA_CO_ASSIGN(const auto timeout, parse::OptionalInt(body, "timeout"));
  if (timeout) {
    SOMA_CO_TRY(co_await manager_.SetTimeout(sandbox, seconds(*timeout),
                                             sandbox::SandboxManager::TimeoutChange::kExtendOnly));
  }
  co_return co_await RespondJson(exchange, 200, SandboxShape(sandbox->record(), domain_));
}

aio::Task<void> ControlFace::SetTimeout(aio::HttpExchange& exchange,
                                        std::shared_ptr<sandbox::Sandbox> sandbox,
                                        std::string_view member) {
  using Change = sandbox::SandboxManager::TimeoutChange;
  const bool refresh = member == "duration";
  SOMA_CO_ASSIGN(const Json body, co_await ReadJsonBody(exchange));
  SOMA_CO_ASSIGN(const auto value, parse::OptionalInt(body, member));
  if (!value && !refresh) {
    co_return Fail(Errc::kInvalidArgument, StrCat("\"", member, "\" is missing"));
  }
  SOMA_CO_TRY(co_await manager_.SetTimeout(std::move(sandbox), seconds(value.value_or(60)),
                                           refresh ? Change::kExtendOnly : Change::kSet));
  co_return co_await exchange.Respond(204, "", "");
}

aio::Task<void> ControlFace::SetNetwork(aio::HttpExchange& exchange,
                                        std::shared_ptr<sandbox::Sandbox> sandbox) {
  SOMA_CO_ASSIGN(const Json body, co_await ReadJsonBody(exchange));
  SOMA_CO_ASSIGN(sandbox::NetworkWish wish, ReadNetworkUpdate(body));
  SOMA_CO_TRY(co_await manager_.SetNetwork(std::move(sandbox), std::move(wish)));
  co_return co_await exchange.Respond(204, "", "");
}

aio::Task<void> ControlFace::Metrics(aio::HttpExchange& exchange, const parse::HttpTarget& target,
                                     std::shared_ptr<sandbox::Sandbox> sandbox) {
  const WallTime now = manager_.Now();
  Json list = Json::MakeArray();
  // One sample, taken now: asked for a time that is over there is none.
  const std::string* end = target.Find("end");
  const auto end_seconds = end == nullptr ? std::nullopt : ParseInt<std::int64_t>(*end);
  if (end_seconds && WallTime(seconds(*end_seconds)) + seconds(5) < now) {
    co_return co_await RespondJson(exchange, 200, list);
  }
  SOMA_CO_ASSIGN(const wire::Message reply,
                 co_await sandbox->link().Call(wire::GetStats{}, seconds(5)));
  const auto* stats = std::get_if<wire::Stats>(&reply);
  if (stats == nullptr) co_return Fail(Errc::kInternal, "the guest gives no statistics");
  // A container sees the machine's memory and processors as its own.
  const auto measured = co_await sandbox->handle().GetStats();
  wire::Stats shown = *stats;
  if (measured) {
    const auto& limits = manager_.limits();
    shown.cpu_count = std::max(1U, limits.cpu_percent_max / 100);
    shown.cpu_used_us = measured->cpu_microseconds;
    shown.memory_total_bytes = limits.memory_bytes_max;
    shown.memory_used_bytes = measured->memory_bytes;
    shown.memory_cache_bytes = measured->memory_cache_bytes;
    shown.uptime_ms = static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::milliseconds>(now - sandbox->record().started_at).count());
  }
  Json sample = Json::MakeObject();
  sample.Set("timestamp", Json(parse::FormatTimestamp(now)));
  sample.Set("timestampUnix",
             Json(std::int64_t{std::chrono::floor<seconds>(now).time_since_epoch().count()}));
  sample.Set("cpuCount", Json(std::int64_t{shown.cpu_count}));
  const double up_us = static_cast<double>(shown.uptime_ms) * 1000.0;
  sample.Set("cpuUsedPct",
             Json(up_us > 0 ? static_cast<double>(shown.cpu_used_us) * 100.0 / up_us : 0.0));
  sample.Set("memUsed", Json(shown.memory_used_bytes));
  sample.Set("memTotal", Json(shown.memory_total_bytes));
  sample.Set("memCache", Json(shown.memory_cache_bytes));
  sample.Set("diskUsed", Json(shown.disk_used_bytes));
  sample.Set("diskTotal", Json(shown.disk_total_bytes));
  list.Append(std::move(sample));
  co_return co_await RespondJson(exchange, 200, list);
}

}  // namespace soma::api
