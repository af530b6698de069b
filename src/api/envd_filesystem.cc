// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "aio/task.h"
#include "api/answers.h"
#include "api/connect_call.h"
#include "api/entry_shape.h"
#include "api/envd.h"
#include "api/record_list.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {
namespace {

using parse::Json;

constexpr std::chrono::seconds kPatience{60};
// A listing is put together in memory; 64 MiB of records is more than an SDK can hold.
constexpr std::size_t kEntriesMax = 100'000;

Result<std::string> Required(const Json& body, std::string_view name) {
  SOMA_ASSIGN(auto value, parse::OptionalString(body, name));
  if (!value || value->empty()) {
    return Fail(Errc::kInvalidArgument, "\"" + std::string(name) + "\" is missing");
  }
  return *std::move(value);
}

// A request whose one reply is an entry, or Ok.
aio::Task<Json> EntryCall(EnvdCall& call, wire::Message request) {
  SOMA_CO_ASSIGN(const wire::Message reply,
                 co_await call.sandbox->link().Call(std::move(request), kPatience));
  Json body = Json::MakeObject();
  if (const auto* entry = std::get_if<wire::Entry>(&reply)) {
    body.Set("entry", EntryShape(entry->info));
  }
  co_return body;
}

aio::Task<Json> ListDirectory(EnvdCall& call, const Json& body) {
  SOMA_CO_ASSIGN(std::string path, Required(body, "path"));
  SOMA_CO_ASSIGN(const auto depth, parse::OptionalInt(body, "depth"));
  if (depth && (*depth < 0 || *depth > UINT32_MAX)) {
    co_return Fail(Errc::kInvalidArgument, "\"depth\" is out of range");
  }
  SOMA_CO_ASSIGN(const auto channel, call.sandbox->link().Request(wire::ListDir{
                                         .user = call.user,
                                         .path = std::move(path),
                                         .depth = static_cast<std::uint32_t>(depth.value_or(1))}));
  SOMA_CO_ASSIGN(
      Json entries,
      co_await ReadRecordList(channel, {.patience = kPatience,
                                        .items_max = kEntriesMax,
                                        .too_many = "the directory has too many entries",
                                        .append = [](const wire::Record& record, Json& list) {
                                          const auto* entry = std::get_if<wire::EntryInfo>(&record);
                                          if (entry != nullptr) list.Append(EntryShape(*entry));
                                          return entry != nullptr;
                                        }}));
  Json reply = Json::MakeObject();
  reply.Set("entries", std::move(entries));
  co_return reply;
}

aio::Task<Json> Unary(EnvdCall& call, std::string_view method, const Json& body) {
  if (method == "ListDir") co_return co_await ListDirectory(call, body);
  if (method == "Move") {
    SOMA_CO_ASSIGN(std::string source, Required(body, "source"));
    SOMA_CO_ASSIGN(std::string destination, Required(body, "destination"));
    co_return co_await EntryCall(call, wire::Move{.user = call.user,
                                                  .source = std::move(source),
                                                  .destination = std::move(destination)});
  }
  if (method == "Stat" || method == "MakeDir" || method == "Remove") {
    SOMA_CO_ASSIGN(std::string path, Required(body, "path"));
    if (method == "Stat") {
      co_return co_await EntryCall(call, wire::Stat{.user = call.user, .path = std::move(path)});
    }
    if (method == "MakeDir") {
      co_return co_await EntryCall(call, wire::MakeDir{.user = call.user, .path = std::move(path)});
    }
    co_return co_await EntryCall(call, wire::Remove{.user = call.user, .path = std::move(path)});
  }
  co_return Fail(Errc::kUnimplemented,
                 "filesystem method " + std::string(method) + " is not supported by this server");
}

}  // namespace

aio::Task<void> HandleFilesystem(EnvdCall& call, std::string_view method) {
  const auto body = co_await ReadConnectRequest(call.exchange);
  if (!body) co_return co_await RespondConnectError(call.exchange, body.error());
  if (method == "WatchDir") {
    ConnectStream stream(call.exchange);
    co_return co_await stream.EndWithError(
        Error(Errc::kUnimplemented, "watching directories is not supported by this server"));
  }
  const auto reply = co_await Unary(call, method, *body);
  if (reply) co_return co_await RespondJson(call.exchange, 200, *reply);
  if (!call.sandbox->alive()) {
    co_return co_await RespondNoSandbox(call.exchange, call.sandbox->record().id);
  }
  co_return co_await RespondConnectError(call.exchange, reply.error());
}

}  // namespace soma::api
