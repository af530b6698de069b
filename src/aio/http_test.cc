// SPDX-License-Identifier: Apache-2.0
#include "aio/http.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/error.h"
#include "sys/fd.h"

namespace soma::aio {
namespace {

// Echoes what it understood.
class Echo final : public HttpHandler {
 public:
  Job Handle(HttpExchange& exchange) override {
    ++requests;
    if (exchange.head().target == "/stream") {
      co_await exchange.StartStream(200, "text/plain");
      co_await exchange.WritePiece("one");
      co_await exchange.WritePiece("two");
      co_await exchange.FinishStream();
      co_return;
    }
    if (exchange.head().target == "/reset") {
      co_await exchange.StartStream(200, "text/plain");
      exchange.Reset();
      co_return;
    }
    if (exchange.head().target == "/unread") {
      co_await exchange.Respond(204, "", "");
      co_return;
    }
    const auto body = co_await exchange.body().ReadWholeBody(100);
    if (!body) {
      co_await exchange.Respond(body.error().code() == Errc::kOutOfRange ? 413 : 400, "text/plain",
                                "bad");
      co_return;
    }
    co_await exchange.Respond(200, "text/plain", exchange.head().method + " " + *body);
  }
  int requests = 0;
};

Job ReadAnswer(ByteStream& stream, std::string& answer) {
  std::uint8_t buffer[1024];
  for (;;) {
    const auto size = co_await stream.Read(buffer);
    if (!size || *size == 0) co_return;
    answer += AsText(ByteView(buffer, *size));
  }
}

Job Send(Loop& loop, ByteStream& stream, std::string text, std::size_t piece) {
  for (std::size_t at = 0; at < text.size(); at += piece) {
    if (!co_await stream.Write(AsBytes(std::string_view(text).substr(at, piece)))) co_return;
    if (piece < text.size()) co_await Sleep(loop, std::chrono::microseconds(10));
  }
  stream.ShutdownWrite();
}

std::string Talk(const std::string& request, std::size_t piece = 1 << 20, int* count = nullptr) {
  int raw[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw), 0);
  Loop loop;
  Echo echo;
  std::string answer;
  const auto client = MakeSocketStream(loop, Fd(raw[0]));
  loop.SpawnRoot(ServeHttp(loop, MakeSocketStream(loop, Fd(raw[1])), echo));
  loop.SpawnRoot(Send(loop, *client, request, piece));
  loop.SpawnRoot(ReadAnswer(*client, answer));
  loop.Run();
  if (count != nullptr) *count = echo.requests;
  return answer;
}

TEST(Http, AnswersAWholeRequest) {
  EXPECT_EQ(Talk("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n\r\nPOST hi");
}

TEST(Http, DecodesChunkedBodiesHoweverTheyArrive) {
  const std::string request =
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n";
  for (std::size_t piece = 1; piece < 12; ++piece) {
    EXPECT_TRUE(Talk(request, piece).ends_with("\r\n\r\nPOST abcde")) << piece;
  }
}

TEST(Http, KeepsTheConnectionForTheNextRequest) {
  int requests = 0;
  const std::string answers = Talk(
      "POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde"
      "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n",
      1 << 20, &requests);
  EXPECT_EQ(requests, 3);
  EXPECT_NE(answers.find("HTTP/1.1 204 No Content\r\n\r\n"), std::string::npos);
  EXPECT_NE(answers.find("3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(answers.ends_with("GET "));
}

TEST(Http, RefusesABodyThatIsTooLarge) {
  EXPECT_TRUE(
      Talk("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'x'))
          .starts_with("HTTP/1.1 413 "));
}

TEST(Http, RefusesABodyThatIsTooLargeBeforeItComes) {
  EXPECT_TRUE(Talk("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n")
                  .starts_with("HTTP/1.1 413 "));
}

Job ReadStalled(Loop& loop, ByteStream& stream, bool& stalled) {
  HttpReader reader(stream, HttpReader::Kind::kRequest, std::chrono::milliseconds(1));
  EXPECT_TRUE(co_await reader.ReadHead());
  const auto body = co_await reader.ReadWholeBody(100);
  EXPECT_EQ(body.error().code(), Errc::kDeadlineExceeded);
  stalled = reader.body_stalled();
  loop.Stop();
}

TEST(Http, KnowsABodyThatStopsComing) {
  int raw[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw), 0);
  const Fd client(raw[0]);
  constexpr std::string_view kPart = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc";
  ASSERT_EQ(::write(client.get(), kPart.data(), kPart.size()), std::ssize(kPart));
  Loop loop;
  const auto stream = MakeSocketStream(loop, Fd(raw[1]));
  bool stalled = false;
  loop.SpawnRoot(ReadStalled(loop, *stream, stalled));
  loop.Run();
  EXPECT_TRUE(stalled);
}

TEST(Http, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  for (const char* request :
       {"POST /x HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "GET /x\r\n\r\n",
        "POST /x HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\nGET /y HTTP/1.1\r\n\r\n",
        "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST /x HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: a\r\n\r\n",
        "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /x HTTP/1.1\r\nA b: c\r\n\r\n",
        "\x16\x03\x01 tls hello\r\n\r\n"}) {
    int requests = 0;
    EXPECT_TRUE(Talk(request, 1 << 20, &requests).starts_with("HTTP/1.1 400 ")) << request;
    EXPECT_EQ(requests, 0) << request;
  }
}

TEST(Http, RefusesAHeadThatIsTooLarge) {
  EXPECT_TRUE(Talk("GET /x HTTP/1.1\r\nA: " + std::string(40'000, 'a') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
}

TEST(Http, ResetLeavesTheStreamWithoutItsEnd) {
  const std::string answer = Talk("GET /reset HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.find("0\r\n\r\n"), std::string::npos);
}

}  // namespace
}  // namespace soma::aio
