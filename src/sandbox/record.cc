// SPDX-License-Identifier: Apache-2.0
#include "sandbox/record.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"

namespace soma::sandbox {
namespace {

using parse::Json;

Json FromPairs(const parse::StringPairs& pairs) {
  Json object = Json::MakeObject();
  for (const auto& [name, value] : pairs) object.Set(name, Json(value));
  return object;
}

Json FromList(const std::vector<std::string>& list) {
  Json array = Json::MakeArray();
  for (const std::string& item : list) array.Append(Json(item));
  return array;
}

Result<std::string> Text(const Json& object, std::string_view name) {
  SOMA_ASSIGN(const auto found, parse::OptionalString(object, name));
  if (!found) return Fail(Errc::kDataLoss, StrCat("\"", name, "\" is missing"));
  return *found;
}

Result<std::array<std::uint8_t, 32>> Secret(const Json& object, std::string_view name) {
  SOMA_ASSIGN(const std::string text, Text(object, name));
  const auto bytes = ParseHex(text);
  std::array<std::uint8_t, 32> secret{};
  if (!bytes || bytes->size() != secret.size()) {
    return Fail(Errc::kDataLoss, StrCat("\"", name, "\" is damaged"));
  }
  std::ranges::copy(*bytes, secret.begin());
  return secret;
}

Result<WallTime> Time(const Json& object, std::string_view name) {
  SOMA_ASSIGN(const auto found, parse::OptionalInt(object, name));
  if (!found) return Fail(Errc::kDataLoss, StrCat("\"", name, "\" is missing"));
  return WallTime(std::chrono::microseconds(*found));
}

Json FromNetwork(const NetworkWish& network) {
  Json object = Json::MakeObject();
  if (network.allow_internet) object.Set("allowInternet", Json(*network.allow_internet));
  object.Set("allowOut", FromList(network.allow_out));
  object.Set("denyOut", FromList(network.deny_out));
  object.Set("allowPublicTraffic", Json(network.allow_public_traffic));
  object.Set("maskRequestHost", Json(network.mask_request_host));
  return object;
}

Result<NetworkWish> ToNetwork(const Json& object) {
  NetworkWish network;
  SOMA_ASSIGN(network.allow_internet, parse::OptionalBool(object, "allowInternet"));
  SOMA_ASSIGN(network.allow_out, parse::OptionalStringList(object, "allowOut"));
  SOMA_ASSIGN(network.deny_out, parse::OptionalStringList(object, "denyOut"));
  SOMA_ASSIGN(const auto is_public, parse::OptionalBool(object, "allowPublicTraffic"));
  network.allow_public_traffic = is_public.value_or(true);
  SOMA_ASSIGN(network.mask_request_host, Text(object, "maskRequestHost"));
  return network;
}

}  // namespace

std::string EncodeRecord(const SandboxRecord& record) {
  Json object = Json::MakeObject();
  object.Set("id", Json(record.id));
  object.Set("tenant", Json(record.tenant));
  object.Set("template", Json(record.template_id));
  object.Set("alias", Json(record.alias));
  object.Set("level", Json(record.level));
  object.Set("metadata", FromPairs(record.metadata));
  object.Set("environment", FromPairs(record.environment));
  object.Set("network", FromNetwork(record.network));
  object.Set("envdToken", Json(record.envd_token));
  object.Set("trafficToken", Json(record.traffic_token));
  object.Set("linkSecret", Json(Hex(record.link_secret)));
  object.Set("guardToken", Json(Hex(record.guard_token)));
  object.Set("startedAt", Json(std::int64_t{record.started_at.time_since_epoch().count()}));
  object.Set("endAt", Json(std::int64_t{record.end_at.time_since_epoch().count()}));
  return object.Write();
}

Result<SandboxRecord> DecodeRecord(std::string_view text) {
  SOMA_ASSIGN(const Json object, parse::ParseJson(text));
  SandboxRecord record;
  SOMA_ASSIGN(record.id, Text(object, "id"));
  SOMA_ASSIGN(record.tenant, Text(object, "tenant"));
  SOMA_ASSIGN(record.template_id, Text(object, "template"));
  SOMA_ASSIGN(record.alias, Text(object, "alias"));
  SOMA_ASSIGN(record.level, Text(object, "level"));
  SOMA_ASSIGN(record.metadata, parse::OptionalStringMap(object, "metadata"));
  SOMA_ASSIGN(record.environment, parse::OptionalStringMap(object, "environment"));
  const Json* network = object.Find("network");
  if (network == nullptr) return Fail(Errc::kDataLoss, "\"network\" is missing");
  SOMA_ASSIGN(record.network, ToNetwork(*network));
  SOMA_ASSIGN(record.envd_token, Text(object, "envdToken"));
  SOMA_ASSIGN(record.traffic_token, Text(object, "trafficToken"));
  SOMA_ASSIGN(record.link_secret, Secret(object, "linkSecret"));
  SOMA_ASSIGN(record.guard_token, Secret(object, "guardToken"));
  SOMA_ASSIGN(record.started_at, Time(object, "startedAt"));
  SOMA_ASSIGN(record.end_at, Time(object, "endAt"));
  return record;
}

}  // namespace soma::sandbox
