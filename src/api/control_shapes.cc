// SPDX-License-Identifier: Apache-2.0
#include "api/control_shapes.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/base64.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "parse/timestamp.h"
#include "sandbox/guest_calls.h"
#include "sandbox/record.h"

namespace soma::api {
namespace {

using parse::Json;
using sandbox::SandboxRecord;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Json MetadataShape(const SandboxRecord& record) {
  Json object = Json::MakeObject();
  for (const auto& [name, value] : record.metadata) object.Set(name, Json(value));
  return object;
}

void SetCommon(Json& object, const SandboxRecord& record) {
  object.Set("templateID", Json(record.template_id));
  if (!record.alias.empty()) object.Set("alias", Json(record.alias));
  object.Set("sandboxID", Json(record.id));
  // Deprecated but required by the SDKs' schema.
  object.Set("clientID", Json("soma"));
  object.Set("envdVersion", Json(kEnvdVersion));
}

void SetRunning(Json& object, const SandboxRecord& record, const runtime::Limits& limits) {
  object.Set("startedAt", Json(parse::FormatTimestamp(record.started_at)));
  object.Set("endAt", Json(parse::FormatTimestamp(record.end_at)));
  object.Set("cpuCount", Json(std::int64_t{(limits.cpu_percent_max + 99) / 100}));
  object.Set("memoryMB", Json(limits.memory_bytes_max / kMiB));
  object.Set("diskSizeMB", Json(limits.disk_bytes_max / kMiB));
  if (!record.metadata.empty()) object.Set("metadata", MetadataShape(record));
  object.Set("state", Json("running"));
}

void SetDomain(Json& object, std::string_view domain) {
  object.Set("domain", domain.empty() ? Json() : Json(domain));
}

bool MatchesMetadata(const SandboxRecord& record, const parse::QueryPairs& wanted) {
  return std::ranges::all_of(wanted, [&record](const auto& pair) {
    return std::ranges::find(record.metadata, pair) != record.metadata.end();
  });
}

bool Matches(const SandboxRecord& record, const ListQuery& query) {
  if (!MatchesMetadata(record, query.metadata)) return false;
  if (query.started_after && record.started_at < *query.started_after) return false;
  return query.template_name.empty() || query.template_name == record.template_id ||
         query.template_name == record.alias;
}

std::string TokenFor(const SandboxRecord& record) {
  return parse::Base64Encode(
      AsBytes(StrCat(record.started_at.time_since_epoch().count(), "__", record.id)));
}

Status ReadToken(const std::string& token, ListQuery& query) {
  const auto bytes = parse::Base64Decode(token);
  const std::string text = bytes ? std::string(AsText(*bytes)) : std::string();
  const std::size_t middle = text.find("__");
  const auto micros = ParseInt<std::int64_t>(std::string_view(text).substr(0, middle));
  if (middle == std::string::npos || !micros) {
    return Fail(Errc::kInvalidArgument, "Invalid next token");
  }
  query.after_time = WallTime(std::chrono::microseconds(*micros));
  query.after_id = text.substr(middle + 2);
  return {};
}

}  // namespace

Json SandboxShape(const SandboxRecord& record, std::string_view domain) {
  Json object = Json::MakeObject();
  SetCommon(object, record);
  object.Set("envdAccessToken", Json(record.envd_token));
  object.Set("trafficAccessToken",
             record.traffic_token.empty() ? Json() : Json(record.traffic_token));
  SetDomain(object, domain);
  return object;
}

Json DetailShape(const SandboxRecord& record, const runtime::Limits& limits,
                 std::string_view domain) {
  Json object = Json::MakeObject();
  SetCommon(object, record);
  SetRunning(object, record, limits);
  object.Set("envdAccessToken", Json(record.envd_token));
  object.Set("allowInternetAccess",
             record.network.allow_internet ? Json(*record.network.allow_internet) : Json());
  SetDomain(object, domain);
  Json lifecycle = Json::MakeObject();
  lifecycle.Set("autoResume", Json(false));
  lifecycle.Set("onTimeout", Json("kill"));
  object.Set("lifecycle", std::move(lifecycle));
  return object;
}

Json ListedShape(const SandboxRecord& record, const runtime::Limits& limits) {
  Json object = Json::MakeObject();
  SetCommon(object, record);
  SetRunning(object, record, limits);
  return object;
}

Result<ListQuery> ReadListQuery(const parse::HttpTarget& target) {
  ListQuery query;
  if (const std::string* metadata = target.Find("metadata")) {
    SOMA_ASSIGN(query.metadata, parse::ParseMetadataFilter(*metadata));
  }
  if (const std::string* state = target.Find("state")) {
    query.running = false;
    for (const std::string_view part : Split(*state, ',')) {
      if (part == "running") query.running = true;
      if (part != "running" && part != "paused") {
        return Fail(Errc::kInvalidArgument, "\"state\" must be running or paused");
      }
    }
  }
  if (const std::string* order = target.Find("order")) query.ascending = *order == "asc";
  if (const std::string* after = target.Find("startedAfter")) {
    query.started_after = parse::ParseTimestamp(*after);
    if (!query.started_after) {
      return Fail(Errc::kInvalidArgument, "\"startedAfter\" must be an RFC 3339 time");
    }
  }
  if (const std::string* name = target.Find("template")) query.template_name = *name;
  if (const std::string* limit = target.Find("limit")) {
    const auto number = ParseInt<std::size_t>(*limit);
    if (!number || *number < 1 || *number > 100) {
      return Fail(Errc::kInvalidArgument, "\"limit\" must be 1 to 100");
    }
    query.limit = *number;
  }
  const std::string* token = target.Find("nextToken");
  if (token != nullptr && !token->empty()) SOMA_TRY(ReadToken(*token, query));
  return query;
}

Page SelectPage(Records all, const ListQuery& query) {
  Page page;
  std::erase_if(all, [&query](const SandboxRecord* record) { return !Matches(*record, query); });
  if (!query.running) all.clear();
  page.total_running = all.size();
  std::ranges::sort(all, [&query](const SandboxRecord* a, const SandboxRecord* b) {
    const auto left = std::tie(a->started_at, a->id);
    const auto right = std::tie(b->started_at, b->id);
    return query.ascending ? left < right : right < left;
  });
  for (const SandboxRecord* record : all) {
    if (query.after_time) {
      const auto here = std::tie(record->started_at, record->id);
      const auto last = std::tie(*query.after_time, query.after_id);
      if (query.ascending ? !(last < here) : !(here < last)) continue;
    }
    if (page.records.size() == query.limit) {
      page.next_token = TokenFor(*page.records.back());
      break;
    }
    page.records.push_back(record);
  }
  return page;
}

}  // namespace soma::api
