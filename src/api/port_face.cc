// SPDX-License-Identifier: Apache-2.0
#include "api/port_face.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "aio/http.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "api/answers.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/http_target.h"
#include "parse/json.h"
#include "sandbox/guest_calls.h"
#include "sandbox/manager.h"
#include "sandbox/record.h"
#include "sandbox/sandbox.h"

namespace soma::api {
namespace {

using parse::Json;

constexpr std::chrono::seconds kDialPatience{10};
// A program may think this long before it answers, and a tunnel may be this quiet.
constexpr std::chrono::minutes kAnswerPatience{15};
constexpr std::chrono::hours kTunnelIdleMax{1};
constexpr std::string_view kTrafficHeader = "e2b-traffic-access-token";
using Buffer = std::array<std::uint8_t, std::size_t{32} * 1024>;

aio::Task<void> RespondProxyError(aio::HttpExchange& exchange, const parse::SandboxPort& route,
                                  int status, std::string_view message) {
  Json body = Json::MakeObject();
  body.Set("sandboxId", Json(route.sandbox_id));
  body.Set("message", Json(message));
  if (status == 502) body.Set("port", Json(std::int64_t{route.port}));
  body.Set("code", Json(status));
  const std::string text = body.Write();
  co_return co_await exchange.Respond(status, "application/json", text);
}

// RFC 9110 section 7.6.1: these belong to one connection and are not passed on.
void RemoveHopByHop(aio::HttpHeaders& headers) {
  for (const std::string_view name : {"connection", "keep-alive", "proxy-connection", "te",
                                      "trailer", "transfer-encoding", "upgrade"}) {
    headers.Remove(name);
  }
}

aio::HttpHead RequestFor(const aio::HttpHead& from, const sandbox::SandboxRecord& record,
                         std::uint16_t port) {
  aio::HttpHead head = from;
  if (!from.upgrade) {
    RemoveHopByHop(head.headers);
    head.headers.Remove("expect");
    if (from.chunked) head.headers.Add("Transfer-Encoding", "chunked");
    head.headers.Add("Connection", "close");
  }
  // What routes and proves here is nobody's business inside, save the token of the envd face, which
  // the code interpreter hands on.
  head.headers.Remove("e2b-sandbox-id");
  head.headers.Remove("e2b-sandbox-port");
  head.headers.Remove(kTrafficHeader);
  head.headers.Remove("x-api-key");
  std::string mask = record.network.mask_request_host;
  if (!mask.empty()) {
    constexpr std::string_view kPlaceholder = "${PORT}";
    const std::size_t at = mask.find(kPlaceholder);
    if (at != std::string::npos) mask.replace(at, kPlaceholder.size(), StrCat(port));
    head.headers.Remove("host");
    head.headers.Add("Host", mask);
  }
  return head;
}

std::string Chunk(ByteView bytes) {
  std::array<char, 16> digits{};
  const char* end =
      std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16).ptr;
  return StrCat(std::string_view(digits.data(), end), "\r\n", AsText(bytes), "\r\n");
}

// The client's body, to the program. Ends early when the program stops reading.
aio::Job PumpRequestBody(aio::HttpReader& body, aio::ByteStream& inside, bool chunked, bool& ok) {
  auto buffer = std::make_unique<Buffer>();
  ok = false;
  for (;;) {
    const auto size = co_await body.ReadBody(*buffer);
    if (!size) {
      inside.Close();
      co_return;
    }
    if (*size == 0) break;
    const ByteView bytes = ByteView(*buffer).first(*size);
    const std::string framed = chunked ? Chunk(bytes) : std::string();
    const auto written = co_await inside.Write(chunked ? AsBytes(framed) : bytes);
    if (!written) co_return;
  }
  if (chunked && !co_await inside.Write(AsBytes("0\r\n\r\n"))) co_return;
  ok = true;
}

aio::Task<void> PassAnswer(aio::HttpExchange& exchange, aio::HttpReader& answer) {
  const bool is_head = exchange.head().method == "HEAD";
  aio::HttpHead head;
  // Interim answers (RFC 9110 section 15.2) are not passed on.
  do {
    SOMA_CO_ASSIGN(head, co_await answer.ReadHead(is_head));
  } while (head.status < 200 && head.status != 101);
  const std::optional<std::uint64_t> length = head.content_length;
  aio::HttpHeaders headers = std::move(head.headers);
  RemoveHopByHop(headers);
  headers.Remove("content-length");
  SOMA_CO_TRY(co_await exchange.StartStream(head.status, "", length, std::move(headers)));
  auto buffer = std::make_unique<Buffer>();
  for (;;) {
    const auto size = co_await answer.ReadBody(*buffer);
    if (!size) {
      // Cut inside: the client must see a cut, too.
      exchange.Reset();
      co_return Status();
    }
    if (*size == 0) break;
    SOMA_CO_TRY(co_await exchange.WritePiece(AsText(ByteView(*buffer).first(*size))));
  }
  co_return co_await exchange.FinishStream();
}

aio::Task<void> Forward(aio::HttpExchange& exchange, aio::ByteStream& inside,
                        const parse::SandboxPort& route) {
  aio::HttpReader answer(inside, aio::HttpReader::Kind::kResponse);
  aio::TaskGroup group(exchange.loop());
  bool body_sent = false;
  group.Spawn(PumpRequestBody(exchange.body(), inside, exchange.head().chunked, body_sent));
  Status passed = co_await PassAnswer(exchange, answer);
  inside.Close();
  if (!passed && !exchange.answered()) {
    passed = co_await RespondProxyError(
        exchange, route, 502, "The sandbox is running but the port gives no valid answer");
  }
  // A client that is still sending is not waited for: its connection ends.
  if (!co_await group.Join(std::chrono::milliseconds(1)) || !body_sent) {
    exchange.Reset();
    while (!co_await group.Join(std::chrono::hours(1))) {
    }
  }
  co_return passed;
}

aio::Task<void> Tunnel(aio::HttpExchange& exchange, aio::ByteStream& inside) {
  exchange.Detach();
  const Bytes buffered = exchange.body().TakeBuffered();
  if (!buffered.empty()) SOMA_CO_TRY(co_await inside.Write(buffered));
  const auto bytes =
      co_await aio::Splice(exchange.loop(), exchange.stream(), inside, kTunnelIdleMax);
  exchange.Reset();
  co_return bytes ? Status() : std::unexpected(bytes.error());
}

Status CheckTrafficToken(const aio::HttpHeaders& headers, const sandbox::Sandbox& sandbox) {
  if (sandbox.record().traffic_token.empty()) return {};
  const std::string* token = headers.Find(kTrafficHeader);
  if (token == nullptr) {
    return Fail(Errc::kPermissionDenied,
                StrCat("Sandbox is secured with traffic access token. Token header '",
                       kTrafficHeader, "' is missing"));
  }
  if (sandbox.TrafficTokenMatches(*token)) return {};
  return Fail(Errc::kPermissionDenied,
              StrCat("Sandbox is secured with traffic access token. Provided token in header '",
                     kTrafficHeader, "' is invalid"));
}

}  // namespace

aio::Task<void> PortFace::Handle(aio::HttpExchange& exchange, parse::SandboxPort route) {
  const auto sandbox = manager_.FindAny(route.sandbox_id);
  if (!sandbox || !sandbox->alive()) {
    co_return co_await RespondNoSandbox(exchange, route.sandbox_id);
  }
  const Status allowed = CheckTrafficToken(exchange.head().headers, *sandbox);
  if (!allowed) {
    co_return co_await RespondProxyError(exchange, route, 403, allowed.error().message());
  }
  auto inside = co_await runtime::DialGuest(sandbox->link(), route.port, kDialPatience);
  if (!inside) {
    if (!sandbox->alive()) co_return co_await RespondNoSandbox(exchange, route.sandbox_id);
    co_return co_await RespondProxyError(exchange, route, 502,
                                         "The sandbox is running but port is not open");
  }
  (*inside)->SetReadDeadline(kAnswerPatience);
  (*inside)->SetWriteDeadline(aio::kBodyStallMax);
  const std::string head =
      WriteRequestHead(RequestFor(exchange.head(), sandbox->record(), route.port));
  SOMA_CO_TRY(co_await (*inside)->Write(AsBytes(head)));
  if (exchange.head().upgrade) co_return co_await Tunnel(exchange, **inside);
  co_return co_await Forward(exchange, **inside, route);
}

}  // namespace soma::api
