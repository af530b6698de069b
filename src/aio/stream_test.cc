// SPDX-License-Identifier: Apache-2.0
#include "aio/stream.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "aio/condition.h"
#include "aio/loop.h"
#include "aio/task.h"
#include "aio/task_group.h"
#include "base/bytes.h"
#include "base/error.h"
#include "sys/fd.h"

namespace soma::aio {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::pair<Fd, Fd> SocketPair() {
  int raw[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw), 0);
  return {Fd(raw[0]), Fd(raw[1])};
}

struct Outcome {
  std::string text;
  Errc error = Errc::kInternal;
  std::uint64_t bytes = 0;
  bool done = false;
};

Job ReadAll(ByteStream& stream, Outcome& outcome) {
  std::array<std::uint8_t, 16> buffer{};
  for (;;) {
    const auto size = co_await stream.Read(buffer);
    if (!size) outcome.error = size.error().code();
    if (!size || *size == 0) break;
    outcome.text += AsText(ByteView(buffer).first(*size));
  }
  outcome.done = true;
}

Job WriteAndFinish(ByteStream& stream, std::string text) {
  co_await stream.Write(AsBytes(text));
  stream.ShutdownWrite();
}

TEST(SocketStream, CarriesBytesUntilTheEnd) {
  Loop loop;
  auto [left, right] = SocketPair();
  const auto a = MakeSocketStream(loop, std::move(left));
  const auto b = MakeSocketStream(loop, std::move(right));
  Outcome outcome;
  loop.SpawnRoot(ReadAll(*b, outcome));
  loop.SpawnRoot(WriteAndFinish(*a, "forty-two bytes or so, more than a buffer"));
  loop.Run();
  EXPECT_EQ(outcome.text, "forty-two bytes or so, more than a buffer");
  EXPECT_TRUE(outcome.done);
}

TEST(SocketStream, ADeadlineEndsAReadThatGetsNothing) {
  Loop loop;
  auto [left, right] = SocketPair();
  const auto a = MakeSocketStream(loop, std::move(left));
  Outcome outcome;
  a->SetReadDeadline(milliseconds(20));
  loop.SpawnRoot(ReadAll(*a, outcome));
  loop.Run();
  EXPECT_EQ(outcome.error, Errc::kDeadlineExceeded);
}

TEST(SocketStream, CloseEndsAPendingRead) {
  Loop loop;
  auto [left, right] = SocketPair();
  const auto a = MakeSocketStream(loop, std::move(left));
  Outcome outcome;
  loop.SpawnRoot(ReadAll(*a, outcome));
  loop.SpawnRoot([](ByteStream& stream) -> Job {
    stream.Close();
    co_return;
  }(*a));
  loop.Run();
  EXPECT_EQ(outcome.error, Errc::kCancelled);
}

Job AcceptOne(Loop& loop, Acceptor& acceptor, Outcome& outcome) {
  auto accepted = co_await acceptor.Accept();
  if (!accepted) co_return;
  const auto stream = MakeSocketStream(loop, *std::move(accepted));
  co_await ReadAll(*stream, outcome);
}

TEST(Acceptor, TakesAConnectionThatResetShowsAsFailure) {
  Loop loop;
  auto listener = ListenTcp("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const auto port = LocalPort(*listener);
  ASSERT_TRUE(port);
  Acceptor acceptor(loop, *std::move(listener));
  Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address{.sin_family = AF_INET,
                            .sin_port = htons(*port),
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                            .sin_zero = {}};
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  const auto stream = MakeSocketStream(loop, std::move(client));
  stream->Reset();
  Outcome outcome;
  loop.SpawnRoot(AcceptOne(loop, acceptor, outcome));
  loop.Run();
  EXPECT_TRUE(outcome.done);
  EXPECT_EQ(outcome.error, Errc::kUnavailable);
}

Job SpliceBoth(Loop& loop, ByteStream& a, ByteStream& b, Outcome& outcome) {
  const auto bytes = co_await Splice(loop, a, b, seconds(30));
  outcome.bytes = bytes.value_or(0);
  outcome.done = true;
}

TEST(Splice, CopiesBothWaysAndEnds) {
  Loop loop;
  auto [client, near] = SocketPair();
  auto [far, server] = SocketPair();
  const auto a = MakeSocketStream(loop, std::move(client));
  const auto b = MakeSocketStream(loop, std::move(near));
  const auto c = MakeSocketStream(loop, std::move(far));
  const auto d = MakeSocketStream(loop, std::move(server));
  Outcome spliced;
  Outcome at_client;
  Outcome at_server;
  loop.SpawnRoot(SpliceBoth(loop, *b, *c, spliced));
  loop.SpawnRoot(ReadAll(*a, at_client));
  loop.SpawnRoot(ReadAll(*d, at_server));
  loop.SpawnRoot(WriteAndFinish(*a, "question"));
  loop.SpawnRoot(WriteAndFinish(*d, "the answer"));
  loop.Run();
  EXPECT_TRUE(spliced.done);
  EXPECT_EQ(spliced.bytes, 18U);
  EXPECT_EQ(at_server.text, "question");
  EXPECT_EQ(at_client.text, "the answer");
}

Job WaitFor(Condition& condition, int& woken, bool& notified) {
  notified = co_await condition.Wait(seconds(60));
  ++woken;
}

TEST(TaskGroup, JoinsItsChildren) {
  Loop loop;
  Condition condition(loop);
  TaskGroup group(loop);
  int woken = 0;
  bool notified = false;
  group.Spawn(WaitFor(condition, woken, notified));
  group.Spawn(WaitFor(condition, woken, notified));
  bool joined_early = true;
  bool joined = false;
  loop.SpawnRoot([](TaskGroup& children, Condition& wake, bool& early, bool& end) -> Job {
    early = co_await children.Join(milliseconds(10));
    wake.NotifyAll();
    end = co_await children.Join(seconds(60));
  }(group, condition, joined_early, joined));
  loop.Run();
  EXPECT_FALSE(joined_early);
  EXPECT_TRUE(joined);
  EXPECT_TRUE(notified);
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(group.size(), 0U);
}

}  // namespace
}  // namespace soma::aio
