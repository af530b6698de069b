// SPDX-License-Identifier: Apache-2.0
// The host's end of the wire before a guest that does what the protocol allows, but too much of it.
#include "runtime/guest_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "aio/loop.h"
#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "runtime/guest_core.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "wire/link.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {
namespace {

using std::chrono::seconds;

// Greets, and answers a task with so many Cut: the protocol sets no number of them.
aio::Job ServeCuts(aio::Loop& loop, Fd wire, std::size_t cuts) {
  const auto stream = aio::MakeSocketStream(loop, std::move(wire));
  wire::Session session(wire::Role::kGuest);
  std::vector<std::uint8_t> buffer(wire::kInputMax);
  for (;;) {
    const auto size = co_await stream->Read(buffer);
    if (!size || *size == 0) co_return;
    session.OnBytes(ByteView(buffer).first(*size));
    while (const auto event = session.Next()) {
      if (event->kind == wire::SessionEvent::Kind::kEstablished) {
        (void)session.Announce(wire::Identity{});
      } else if (std::holds_alternative<wire::GetStats>(event->message)) {
        (void)session.Reply(event->channel, wire::Stats{});
      } else if (event->opens) {
        (void)session.Reply(event->channel, wire::Started{.pid = 7});
        for (std::size_t i = 0; i < cuts; ++i) (void)session.Reply(event->channel, wire::Cut{});
      }
    }
    for (ByteView out = session.Output(); !out.empty(); out = session.Output()) {
      const Bytes copy(out.begin(), out.end());
      session.Wrote(copy.size());
      if (!co_await stream->Write(copy)) co_return;
    }
  }
}

// What a client finds that asks for a task and then takes nothing for a while.
struct Found {
  bool alive = false;
  std::size_t taken = 0;
  std::string error;
};

aio::Job Ask(aio::Loop& loop, Fd wire, Found& found) {
  GuestLink link(loop, std::move(wire), {});
  const auto identity = co_await link.Establish(seconds(60));
  EXPECT_TRUE(identity);
  const auto channel = link.Request(wire::Start{.arguments = {"true"}});
  EXPECT_TRUE(channel);
  // The guest's answers come one after the other: with the last one's answer here they all are.
  const auto stats = co_await link.Call(wire::GetStats{}, seconds(60));
  (void)stats;
  found.alive = link.alive();
  for (;;) {
    const auto message = co_await (*channel)->Next(std::chrono::milliseconds(1));
    if (!message) {
      found.error = message.error().message();
      break;
    }
    ++found.taken;
  }
  loop.Stop();
}

Found AnswersOf(std::size_t cuts) {
  aio::Loop loop;
  auto pair = sys::MakeSocketPair(SOCK_STREAM | SOCK_NONBLOCK);
  Found found;
  loop.SpawnRoot(ServeCuts(loop, std::move(pair->second), cuts));
  loop.SpawnRoot(Ask(loop, std::move(pair->first), found));
  loop.Run();
  return found;
}

TEST(GuestLink, AnswersThatNobodyTookYetWait) {
  const Found found = AnswersOf(kOthersWaitingMax - 1);
  EXPECT_TRUE(found.alive);
  EXPECT_EQ(found.taken, kOthersWaitingMax);
}

TEST(HostileGuest, AnswersWithoutEndEndTheGuest) {
  const Found found = AnswersOf(kOthersWaitingMax * 10);
  EXPECT_FALSE(found.alive);
  EXPECT_LE(found.taken, kOthersWaitingMax);
  EXPECT_NE(found.error.find("broke the protocol"), std::string::npos) << found.error;
}

}  // namespace
}  // namespace soma::runtime
