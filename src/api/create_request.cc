// SPDX-License-Identifier: Apache-2.0
#include "api/create_request.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/json.h"
#include "sandbox/manager.h"
#include "sandbox/record.h"

namespace soma::api {
namespace {

using parse::Json;

// e2b.md section 8, trap 1.
constexpr std::chrono::seconds kTimeoutV1{15};
constexpr std::chrono::seconds kTimeoutV2{300};
constexpr std::size_t kTemplateNameBytesMax = 128;  // with its tag

// Before anything is recorded about it: whether a template of this name exists is found out later.
bool MayNameTemplate(std::string_view name) {
  return name.size() <= kTemplateNameBytesMax &&
         std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f; });
}

bool IsPresent(const Json& body, std::string_view name) {
  const Json* found = body.Find(name);
  return found != nullptr && !found->is_null();
}

Status RefuseWhatIsNotThere(const Json& body) {
  for (const std::string_view name : {"volumeMounts", "iam", "mcp"}) {
    const Json* found = body.Find(name);
    const bool empty = found == nullptr || found->is_null() ||
                       (found->AsArray() != nullptr && found->AsArray()->empty()) ||
                       (found->AsObject() != nullptr && found->AsObject()->empty());
    if (!empty) {
      return Fail(Errc::kUnimplemented, StrCat("\"", name, "\" is not supported by this server"));
    }
  }
  SOMA_ASSIGN(const auto auto_pause, parse::OptionalBool(body, "autoPause"));
  if (auto_pause.value_or(false)) {
    return Fail(Errc::kUnimplemented, "\"autoPause\" is not supported by this server");
  }
  return {};
}

// What create and update have in common.
Status ReadOutward(const Json& network, sandbox::NetworkWish& wish) {
  for (const std::string_view name : {"egressProxy", "rules", "httpsPorts"}) {
    if (IsPresent(network, name)) {
      return Fail(Errc::kUnimplemented,
                  StrCat("\"network.", name, "\" is not supported by this server"));
    }
  }
  SOMA_ASSIGN(wish.allow_out, parse::OptionalStringList(network, "allowOut"));
  SOMA_ASSIGN(wish.deny_out, parse::OptionalStringList(network, "denyOut"));
  return {};
}

Result<sandbox::NetworkWish> ReadNetwork(const Json& body) {
  sandbox::NetworkWish wish;
  SOMA_ASSIGN(wish.allow_internet, parse::OptionalBool(body, "allow_internet_access"));
  if (!IsPresent(body, "network")) return wish;
  const Json& network = *body.Find("network");
  if (!network.is_object()) {
    return Fail(Errc::kInvalidArgument, "\"network\" must be an object");
  }
  SOMA_TRY(ReadOutward(network, wish));
  SOMA_ASSIGN(const auto is_public, parse::OptionalBool(network, "allowPublicTraffic"));
  wish.allow_public_traffic = is_public.value_or(true);
  SOMA_ASSIGN(const auto host, parse::OptionalString(network, "maskRequestHost"));
  wish.mask_request_host = host.value_or("");
  return wish;
}

}  // namespace

Result<sandbox::CreateRequest> ReadCreateRequest(const Json& body, Generation version) {
  SOMA_TRY(RefuseWhatIsNotThere(body));
  sandbox::CreateRequest request;
  SOMA_ASSIGN(const auto name, parse::OptionalString(body, "templateID"));
  if (!name || name->empty()) return Fail(Errc::kInvalidArgument, "\"templateID\" is missing");
  if (!MayNameTemplate(*name)) {
    return Fail(Errc::kInvalidArgument, "\"templateID\" is no name of a template");
  }
  request.template_name = *name;
  SOMA_ASSIGN(const auto timeout, parse::OptionalInt(body, "timeout"));
  request.timeout = version == Generation::kV1 ? kTimeoutV1 : kTimeoutV2;
  // The manager bounds it; here it only must not overflow on the way.
  if (timeout && (*timeout < 0 || *timeout > std::chrono::seconds(std::chrono::years(1)).count())) {
    return Fail(Errc::kInvalidArgument, "\"timeout\" is out of range");
  }
  if (timeout) request.timeout = std::chrono::seconds(*timeout);
  SOMA_ASSIGN(request.metadata, parse::OptionalStringMap(body, "metadata"));
  SOMA_ASSIGN(request.environment, parse::OptionalStringMap(body, "envVars"));
  SOMA_ASSIGN(request.network, ReadNetwork(body));
  SOMA_ASSIGN(const auto secure, parse::OptionalBool(body, "secure"));
  // Every sandbox is secured here; SDKs send the token that they are given, asked for or not.
  const bool says_secure = version == Generation::kV2 || secure.value_or(false);
  if (!request.network.allow_public_traffic && !says_secure) {
    return Fail(Errc::kInvalidArgument, "\"allowPublicTraffic\": false needs \"secure\": true");
  }
  return request;
}

Result<sandbox::NetworkWish> ReadNetworkUpdate(const Json& body) {
  if (!body.is_object()) return Fail(Errc::kInvalidArgument, "the body must be an object");
  sandbox::NetworkWish wish;
  SOMA_ASSIGN(wish.allow_internet, parse::OptionalBool(body, "allow_internet_access"));
  SOMA_TRY(ReadOutward(body, wish));
  return wish;
}

}  // namespace soma::api
