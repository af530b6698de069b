// SPDX-License-Identifier: Apache-2.0
// The host's end of the wire before a guest that does what the protocol allows, but too much of it.
#include "runtime/guest_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "aio/loop.h"
#include "aio/task.h"
#include "runtime/guest_core.h"
#include "runtime/guest_test_support.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::runtime {
namespace {

using std::chrono::seconds;

// Answers a task with so many Cut: the protocol sets no number of them.
aio::Job AnswerWithCuts(wire::Session& session, const wire::SessionEvent& event, std::size_t cuts) {
  if (std::holds_alternative<wire::GetStats>(event.message)) {
    (void)session.Reply(event.channel, wire::Stats{});
  } else if (event.opens) {
    (void)session.Reply(event.channel, wire::Started{.pid = 7});
    for (std::size_t i = 0; i < cuts; ++i) (void)session.Reply(event.channel, wire::Cut{});
  }
  co_return;
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
  loop.SpawnRoot(ServeGuest(
      loop, std::move(pair->second),
      [cuts](auto& session, const auto& event) { return AnswerWithCuts(session, event, cuts); }));
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
