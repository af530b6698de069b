// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "aio/http.h"
#include "aio/task.h"
#include "api/answers.h"
#include "api/connect_call.h"
#include "api/envd.h"
#include "api/process_shapes.h"
#include "api/record_list.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {
namespace {

using parse::Json;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kCallPatience{30};
// The guest ends a task at its timeout; when it does not even say so, the stream ends here.
constexpr seconds kTimeoutGrace{5};
constexpr std::size_t kTasksMax = 4096;

Error TimeoutError() {
  return {Errc::kDeadlineExceeded, "the command took longer than its timeout"};
}

// How long a stream may wait for its next event: until a keepalive is due or its time is over.
std::chrono::nanoseconds WaitFor(std::chrono::nanoseconds keepalive,
                                 std::optional<steady_clock::time_point> end) {
  if (!end) return keepalive;
  const std::chrono::nanoseconds left = *end - steady_clock::now();
  return std::max(std::chrono::nanoseconds(0), std::min(keepalive, left));
}

// Passes a task's events on until it ends, its time is over, or somebody leaves. The client's
// leaving ends only the stream: the task goes on (e2b.md section 3.3).
aio::Task<void> StreamEvents(EnvdCall& call, std::shared_ptr<runtime::GuestChannel> channel,
                             std::optional<steady_clock::time_point> end) {
  const seconds keepalive = KeepaliveInterval(call.exchange.head().headers);
  ConnectStream stream(call.exchange);
  for (;;) {
    auto message = co_await channel->Next(WaitFor(keepalive, end));
    if (!message && message.error().code() == Errc::kDeadlineExceeded && call.sandbox->alive()) {
      if (end && steady_clock::now() >= *end)
        co_return co_await stream.EndWithError(TimeoutError());
      SOMA_CO_TRY(co_await stream.Send(KeepaliveShape()));
      continue;
    }
    if (!message && !call.sandbox->alive()) {
      // SDKs tell a killed sandbox from a finished command by a broken connection only.
      call.exchange.Reset();
      co_return Status();
    }
    if (!message) co_return co_await stream.EndWithError(message.error());
    const auto* exit = std::get_if<wire::Exit>(&*message);
    if (exit != nullptr && exit->timed_out) {
      co_return co_await stream.EndWithError(TimeoutError());
    }
    if (const auto shape = EventShape(*message)) SOMA_CO_TRY(co_await stream.Send(*shape));
    if (exit != nullptr) co_return co_await stream.End();
  }
}

// Opens the channel and streams, or says in the trailer why not.
aio::Task<void> StreamRequest(EnvdCall& call, Result<wire::Message> request,
                              std::optional<steady_clock::time_point> end) {
  ConnectStream stream(call.exchange);
  if (!request) co_return co_await stream.EndWithError(request.error());
  auto channel = call.sandbox->link().Request(*request);
  if (!channel && !call.sandbox->alive()) {
    co_return co_await RespondNoSandbox(call.exchange, call.sandbox->record().id);
  }
  if (!channel) co_return co_await stream.EndWithError(channel.error());
  co_return co_await StreamEvents(call, *std::move(channel), end);
}

aio::Task<void> Start(EnvdCall& call) {
  const auto body = co_await ReadConnectRequest(call.exchange);
  Result<wire::Message> request = wire::Message(wire::Start{});
  std::optional<steady_clock::time_point> end;
  auto start = body ? ReadStart(*body) : std::unexpected(body.error());
  if (start) {
    start->user = call.user;
    if (const auto timeout = ConnectTimeout(call.exchange.head().headers)) {
      start->timeout_ms = static_cast<std::uint32_t>(timeout->count());
      end = steady_clock::now() + *timeout + kTimeoutGrace;
    }
    request = *std::move(start);
  } else {
    request = std::unexpected(start.error());
  }
  co_return co_await StreamRequest(call, std::move(request), end);
}

aio::Task<void> Connect(EnvdCall& call) {
  const auto body = co_await ReadConnectRequest(call.exchange);
  const auto selector = body ? ReadSelector(*body) : std::unexpected(body.error());
  std::optional<steady_clock::time_point> end;
  if (const auto timeout = ConnectTimeout(call.exchange.head().headers)) {
    end = steady_clock::now() + *timeout;
  }
  Result<wire::Message> request = wire::Message(wire::Attach{});
  if (selector) {
    request = wire::Attach{.task = *selector};
  } else {
    request = std::unexpected(selector.error());
  }
  co_return co_await StreamRequest(call, std::move(request), end);
}

aio::Task<Json> List(EnvdCall& call) {
  SOMA_CO_ASSIGN(const auto channel, call.sandbox->link().Request(wire::ListTasks{}));
  SOMA_CO_ASSIGN(
      Json processes,
      co_await ReadRecordList(channel, {.patience = kCallPatience,
                                        .items_max = kTasksMax,
                                        .too_many = "the sandbox has too many processes",
                                        .append = [](const wire::Record& record, Json& list) {
                                          const auto* task = std::get_if<wire::TaskInfo>(&record);
                                          if (task != nullptr && !task->has_exited) {
                                            list.Append(TaskShape(*task));
                                          }
                                          return task != nullptr;
                                        }}));
  Json reply = Json::MakeObject();
  reply.Set("processes", std::move(processes));
  co_return reply;
}

aio::Task<Json> Simple(EnvdCall& call, wire::Message request) {
  SOMA_CO_ASSIGN(const wire::Message reply,
                 co_await call.sandbox->link().Call(std::move(request), kCallPatience));
  (void)reply;
  co_return Json::MakeObject();
}

aio::Task<Json> SendInput(EnvdCall& call, const Json& body) {
  SOMA_CO_ASSIGN(const wire::TaskSelector task, ReadSelector(body));
  SOMA_CO_ASSIGN(const Bytes bytes, ReadInput(body));
  ByteView rest = bytes;
  do {
    const ByteView piece = rest.first(std::min(rest.size(), wire::kDataMax));
    rest = rest.subspan(piece.size());
    SOMA_CO_TRY(co_await Simple(
        call, wire::Stdin{.task = task, .bytes = Bytes(piece.begin(), piece.end())}));
  } while (!rest.empty());
  co_return Json::MakeObject();
}

aio::Task<Json> Unary(EnvdCall& call, std::string_view method, const Json& body) {
  if (method == "List") co_return co_await List(call);
  if (method == "SendInput") co_return co_await SendInput(call, body);
  SOMA_CO_ASSIGN(const wire::TaskSelector task, ReadSelector(body));
  if (method == "SendSignal") {
    SOMA_CO_ASSIGN(const std::uint8_t number, ReadSignal(body));
    co_return co_await Simple(call, wire::Signal{.task = task, .number = number});
  }
  if (method == "CloseStdin") co_return co_await Simple(call, wire::CloseStdin{.task = task});
  if (method == "Update") {
    if (body.Find("pty") == nullptr) co_return Json::MakeObject();
    SOMA_CO_ASSIGN(const wire::TerminalSize size, ReadPtySize(body));
    co_return co_await Simple(call, wire::Resize{.task = task, .size = size});
  }
  co_return Fail(Errc::kUnimplemented, "no such method");
}

}  // namespace

aio::Task<void> HandleProcess(EnvdCall& call, std::string_view method) {
  if (method == "Start") co_return co_await Start(call);
  if (method == "Connect") co_return co_await Connect(call);
  const auto body = co_await ReadConnectRequest(call.exchange);
  if (!body) co_return co_await RespondConnectError(call.exchange, body.error());
  const auto reply = co_await Unary(call, method, *body);
  if (reply) co_return co_await RespondJson(call.exchange, 200, *reply);
  if (!call.sandbox->alive()) {
    co_return co_await RespondNoSandbox(call.exchange, call.sandbox->record().id);
  }
  co_return co_await RespondConnectError(call.exchange, reply.error());
}

}  // namespace soma::api
