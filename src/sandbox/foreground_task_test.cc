// SPDX-License-Identifier: Apache-2.0
// A command whose guest is a session in this process.
#include "sandbox/foreground_task.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/error.h"
#include "base/result.h"
#include "runtime/guest_link.h"
#include "runtime/guest_test_support.h"
#include "sandbox/foreground_end.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::sandbox {
namespace {

constexpr std::chrono::seconds kPatience{60};

class ForegroundTaskTest : public testing::Test {
 protected:
  // The agent's side: before it says that the command runs, a signal reaches us; the command ends
  // by the first one that it gets.
  aio::Job Answer(wire::Session& session, const wire::SessionEvent& event) {
    if (event.opens && std::holds_alternative<wire::Start>(event.message)) {
      command = event.channel;
      (void)co_await task->Forward(SIGTERM);
      (void)co_await task->Forward(SIGTERM);
      (void)session.Reply(command, wire::Started{.pid = 7});
    } else if (const auto* signal = std::get_if<wire::Signal>(&event.message)) {
      signals.push_back(signal->number);
      (void)session.Reply(event.channel, wire::Ok{});
      (void)session.Reply(command, wire::Exit{.code = -1, .signal = signal->number});
    } else if (event.opens) {
      (void)session.Reply(event.channel, wire::Ok{});
    }
  }

  aio::Job Drive(Fd wire) {
    link = std::make_unique<runtime::GuestLink>(loop, std::move(wire), runtime::GuestLinkOptions{});
    const auto identity = co_await link->Establish(kPatience);
    EXPECT_TRUE(identity);
    task = std::make_unique<ForegroundTask>(loop, *link, wire::Start{.arguments = {"x"}},
                                            []() -> aio::Task<void> { co_return Status(); });
    end = co_await task->Run();
    loop.Stop();
  }

  aio::Loop loop;
  std::unique_ptr<runtime::GuestLink> link;
  std::unique_ptr<ForegroundTask> task;
  wire::ChannelId command{};
  std::vector<int> signals;
  Result<TaskEnd> end = Fail(Errc::kInternal, "not run");
};

TEST_F(ForegroundTaskTest, ASignalThatComesBeforeTheCommandRunsReachesIt) {
  auto pair = sys::MakeSocketPair(SOCK_STREAM | SOCK_NONBLOCK);
  ASSERT_TRUE(pair);
  loop.SpawnRoot(runtime::ServeGuest(
      loop, std::move(pair->second),
      [this](auto& session, const auto& event) { return Answer(session, event); }));
  loop.SpawnRoot(Drive(std::move(pair->first)));
  loop.Run();
  ASSERT_TRUE(end) << end.error().message();
  EXPECT_EQ(end->exit_code, 128 + SIGTERM);
  EXPECT_EQ(signals, std::vector{SIGTERM});
}

}  // namespace
}  // namespace soma::sandbox
