// SPDX-License-Identifier: Apache-2.0
// A real agent in a child process, driven over a real socketpair. Runs as root and as anybody.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sanitized.h"
#include "base/text.h"
#include "guest/agent_driver.h"
#include "guest/agent_test_support.h"
#include "guest/output_ring.h"
#include "guest/task_table.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

using wire::Exit;
using wire::Failed;

// ---- Tasks ----

TEST(Agent, RunsACommandAndKeepsItsStreamsApart) {
  AgentDriver agent;
  const Arrived& run = agent.Run(Command("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(run.out, "out\n");
  EXPECT_EQ(run.err, "err\n");
  ASSERT_TRUE(run.Find<wire::Started>());
  ASSERT_TRUE(run.Find<Exit>());
  EXPECT_EQ(run.Find<Exit>()->code, 3);
  EXPECT_EQ(run.Find<Exit>()->status, "exit status 3");
}

TEST(Agent, ThePidIsTheOneThatTheTaskSees) {
  AgentDriver agent;
  const Arrived& run = agent.Run(Command("echo $$"));
  EXPECT_EQ(run.out, StrCat(run.Find<wire::Started>()->pid, "\n"));
}

TEST(Agent, AStrictTaskHasNoPrivileges) {
  AgentDriver agent;
  const Arrived& run =
      agent.Run(Command("grep -E '^(NoNewPrivs|CapEff|CapBnd|Seccomp):' /proc/self/status"));
  EXPECT_NE(run.out.find("NoNewPrivs:\t1"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("CapEff:\t0000000000000000"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Seccomp:\t2"), std::string::npos) << run.out;
}

TEST(Agent, ARootedTaskIsBounded) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to bound";
  AgentDriver agent;
  wire::Start start = Command("grep -E '^(NoNewPrivs|CapBnd|Seccomp):' /proc/self/status");
  start.profile = "rooted";
  start.user = "root";
  const Arrived& run = agent.Run(start);
  EXPECT_NE(run.out.find("NoNewPrivs:\t0"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("CapBnd:\t00000000800425fb"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("Seccomp:\t2"), std::string::npos) << run.out;
}

// As in a container: no clone3 there, and the strict filter comes on top.
TEST(Agent, WorksUnderTheFilterOfAContainer) {
  AgentDriver agent(AgentDriver::Filter::kRooted);
  EXPECT_EQ(agent.Run(Command("echo here")).out, "here\n");
  wire::Start start = Command("stty size");
  start.has_terminal = true;
  start.terminal = {.columns = 80, .rows = 24};
  start.profile = "rooted";
  const Arrived& run = agent.Run(start);
  EXPECT_EQ(run.out, "24 80\r\n");
  EXPECT_TRUE(agent.Run(wire::ReadFile{.path = "/etc/passwd"}).Find<wire::Ok>());
}

TEST(Agent, StdinIsWrittenAndClosed) {
  AgentDriver agent;
  wire::Start start = Command("cat");
  start.has_stdin = true;
  const auto run = agent.Request(start);
  const std::uint32_t pid = PidOf(agent, run);
  const std::string text(150'000, 'x');
  std::vector<wire::ChannelId> writes;
  for (std::size_t at = 0; at < text.size(); at += wire::kDataMax) {
    const std::string part = text.substr(at, wire::kDataMax);
    writes.push_back(
        agent.Request(wire::Stdin{.task = {.pid = pid}, .bytes = {part.begin(), part.end()}}));
  }
  for (const auto write : writes) EXPECT_TRUE(agent.Finish(write).Find<wire::Ok>());
  EXPECT_TRUE(agent.Run(wire::CloseStdin{.task = {.pid = pid}}).Find<wire::Ok>());
  EXPECT_EQ(agent.Finish(run).out, text);
  EXPECT_EQ(agent.Finish(run).Find<Exit>()->code, 0);
}

TEST(Agent, StdinThatIsNotOpenIsAnError) {
  AgentDriver agent;
  const auto run = agent.Request(Command("sleep 100"));
  const std::uint32_t pid = PidOf(agent, run);
  const auto& write = agent.Run(wire::Stdin{.task = {.pid = pid}, .bytes = {1}});
  ASSERT_TRUE(write.Find<Failed>());
  EXPECT_EQ(write.Find<Failed>()->code, Errc::kInternal);
}

TEST(Agent, ATerminalHasItsSizeAndIsResized) {
  AgentDriver agent;
  wire::Start start = Command("stty size; read line; stty size; tty >/dev/null && echo is-tty");
  start.has_terminal = true;
  start.terminal = {.columns = 91, .rows = 33};
  const auto run = agent.Request(start);
  const std::uint32_t pid = PidOf(agent, run);
  agent.Until([&] { return agent[run].out.find("33 91") != std::string::npos; });
  EXPECT_TRUE(agent.Run(wire::Resize{.task = {.pid = pid}, .size = {.columns = 120, .rows = 40}})
                  .Find<wire::Ok>());
  EXPECT_TRUE(agent.Run(wire::Stdin{.task = {.pid = pid}, .bytes = {'\n'}}).Find<wire::Ok>());
  const Arrived& end = agent.Finish(run);
  EXPECT_NE(end.out.find("40 120"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find("is-tty"), std::string::npos) << end.out;
  EXPECT_EQ(end.Find<Exit>()->code, 0);
}

TEST(Agent, EnvironmentIsLoginThenGlobalThenOwn) {
  AgentDriver agent;
  EXPECT_TRUE(
      agent.Run(wire::Init{.environment = {{"A", "global"}, {"B", "global"}}}).Find<wire::Ok>());
  wire::Start start = Command("echo $A $B; test -n \"$HOME\" -a -n \"$USER\" -a -n \"$PATH\"");
  start.environment = {{"B", "own"}};
  const Arrived& run = agent.Run(start);
  EXPECT_EQ(run.out, "global own\n");
  EXPECT_EQ(run.Find<Exit>()->code, 0);
}

TEST(Agent, SignalsReachOneProcessAndItsChildrenDoNotHoldTheEnd) {
  AgentDriver agent;
  // The child keeps the pipes open for much longer than the test waits.
  const auto run = agent.Request(Command("sleep 300 & echo $!; wait"));
  const std::uint32_t pid = PidOf(agent, run);
  agent.Until([&] { return !agent[run].out.empty(); });
  EXPECT_TRUE(agent.Run(wire::Signal{.task = {.pid = pid}, .number = 9}).Find<wire::Ok>());
  const Arrived& end = agent.Finish(run);
  EXPECT_EQ(end.Find<Exit>()->code, -1);
  EXPECT_EQ(end.Find<Exit>()->signal, 9);
  EXPECT_EQ(end.Find<Exit>()->status, "signal: killed");
  const auto child = ParseInt<pid_t>(Trim(Split(end.out, '\n')[0]));
  ASSERT_TRUE(child);
  EXPECT_EQ(::kill(*child, 9), 0);
}

TEST(Agent, ATimeoutKills) {
  AgentDriver agent;
  wire::Start start = Command("exec sleep 300");  // a login shell would leave it behind
  start.timeout_ms = 50;
  const Arrived& run = agent.Run(start);
  EXPECT_TRUE(run.Find<Exit>()->timed_out);
  EXPECT_EQ(run.Find<Exit>()->signal, 9);
}

TEST(Agent, RefusalsAreExact) {
  AgentDriver agent;
  wire::Start start = Command("true");
  start.user = "nobody-of-that-name";
  EXPECT_EQ(agent.Run(start).Find<Failed>()->code, Errc::kUnauthenticated);
  EXPECT_EQ(agent.Run(start).Find<Failed>()->message, "invalid username: 'nobody-of-that-name'");
  start = Command("true");
  start.workdir = "/no/such/place";
  EXPECT_EQ(agent.Run(start).Find<Failed>()->code, Errc::kInvalidArgument);
  EXPECT_EQ(agent.Run(start).Find<Failed>()->message, "cwd '/no/such/place' does not exist");
  start = Command("true");
  start.arguments = {"no-such-program"};
  EXPECT_EQ(agent.Run(start).Find<Failed>()->code, Errc::kNotFound);
  start.arguments = {"/etc/passwd"};
  EXPECT_EQ(agent.Run(start).Find<Failed>()->code, Errc::kPermissionDenied);
  start = Command("true");
  start.profile = "everything";
  EXPECT_EQ(agent.Run(start).Find<Failed>()->code, Errc::kInvalidArgument);
  EXPECT_EQ(agent.Run(wire::Signal{.task = {.pid = 999'999}, .number = 9}).Find<Failed>()->code,
            Errc::kNotFound);
}

TEST(Agent, AThousandShortProcessesLeaveNothing) {
  AgentDriver agent;
  constexpr std::size_t kRounds = kSanitized ? 10 : 50;
  constexpr std::size_t kEach = 20;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<wire::ChannelId> runs;
    for (std::size_t i = 0; i < kEach; ++i) runs.push_back(agent.Request(Command("echo $$")));
    for (const auto run : runs) {
      const Arrived& end = agent.Finish(run);
      ASSERT_TRUE(end.Find<Exit>());
      EXPECT_EQ(end.Find<Exit>()->code, 0);
      EXPECT_EQ(end.out, StrCat(end.Find<wire::Started>()->pid, "\n"));
    }
  }
  const auto descriptors =
      std::filesystem::directory_iterator(StrCat("/proc/", agent.pid(), "/fd"));
  EXPECT_LT(std::distance(begin(descriptors), end(descriptors)), 20);
  // No zombie either: the agent has no children.
  EXPECT_EQ(Contents(StrCat("/proc/", agent.pid(), "/task/", agent.pid(), "/children")), "");
  const auto& list = agent.Run(wire::ListTasks{});
  EXPECT_LE(Records(list.out).size(), TaskTable::kEndedMax + 1);
}

TEST(Agent, OutputOfASlowReaderWaitsAndIsWhole) {
  AgentDriver agent;
  agent.StopConsuming();
  const auto run = agent.Request(Command("head -c 3000000 /dev/zero; echo done >&2"));
  // One window, and not a byte more.
  agent.Until([&] { return agent[run].out.size() == wire::kChannelWindow; });
  EXPECT_FALSE(agent[run].closed);
  agent.session().Consumed(run, agent[run].out.size());
  AgentDriver& consuming = agent;
  consuming.Until([&] {
    static std::size_t seen = wire::kChannelWindow;
    if (agent[run].closed) return true;
    agent.session().Consumed(run, agent[run].out.size() + agent[run].err.size() - seen);
    seen = agent[run].out.size() + agent[run].err.size();
    return false;
  });
  EXPECT_EQ(agent[run].out.size(), 3'000'000U);
  EXPECT_EQ(agent[run].lost, 0U);
}

TEST(Agent, WithoutAReaderTheOldestIsDroppedAndTheCutIsMarked) {
  AgentDriver agent;
  constexpr std::size_t kSize = 3'000'000;
  const auto run = agent.Request(Command("head -c 3000000 /dev/zero; echo end"));
  const std::uint32_t pid = PidOf(agent, run);
  agent.session().Abort(run, Errc::kCancelled, "");
  agent.Until([&] {
    const auto list = agent.Run(wire::ListTasks{});
    const auto records = Records(list.out);
    return std::ranges::any_of(records, [&](const wire::Record& record) {
      const auto& info = std::get<wire::TaskInfo>(record);
      return info.pid == pid && info.has_exited;
    });
  });
  const Arrived& attached = agent.Run(wire::Attach{.task = {.pid = pid}});
  EXPECT_GT(attached.lost, 0U);
  EXPECT_EQ(attached.lost + attached.out.size(), kSize + 4);
  EXPECT_TRUE(attached.out.ends_with("end\n"));
  EXPECT_LE(attached.out.size(), OutputRing::kCapacity);
  EXPECT_EQ(attached.Find<Exit>()->code, 0);
}

// ---- The peer is lost ----

// What measured.md L asks for: the server dies in the middle of a stream, the next one attaches and
// gets everything from the beginning, without a gap, and the right exit code.
TEST(Agent, AfterALostPeerTheOutputComesFromTheBeginning) {
  AgentDriver agent;
  const auto run = agent.Request(
      Command("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 7"));
  const std::uint32_t pid = PidOf(agent, run);
  agent.Until([&] { return agent[run].out.size() > 100; });
  agent.Request(wire::Stat{.path = "/"});
  agent.WriteHalfAFrame();
  agent.Reconnect(true);
  const Arrived& attached = agent.Run(wire::Attach{.task = {.pid = pid}});
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += StrCat("line ", i, "\n");
  EXPECT_EQ(attached.out, expected);
  EXPECT_EQ(attached.lost, 0U);
  EXPECT_EQ(attached.Find<Exit>()->code, 7);
}

TEST(Agent, ATaskIsFoundByItsTag) {
  AgentDriver agent;
  wire::Start start = Command("echo x; sleep 100");
  start.tag = "my-tag";
  PidOf(agent, agent.Request(start));
  agent.Reconnect();
  const auto attached = agent.Request(wire::Attach{.task = {.tag = "my-tag"}});
  agent.Until([&] { return agent[attached].out == "x\n"; });
  EXPECT_EQ(agent[attached].Find<wire::Started>()->tag, "my-tag");
}

TEST(Agent, SurvivesNonsenseAndServesTheNextHello) {
  AgentDriver agent;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(std::uniform_int_distribution<std::size_t>(1, 3000)(random), 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (round % 3 == 0) bytes.replace(0, 4, "SOMW");
    static_cast<void>(!::write(agent.wire(), bytes.data(), bytes.size()));
    if (round % 20 == 0) agent.Reconnect();
  }
  agent.Reconnect();
  EXPECT_EQ(agent.Run(Command("echo alive")).out, "alive\n");
}

TEST(Agent, EndsWhenTheWireIsGoneForEver) {
  AgentDriver agent;
  agent.CloseWire();
  EXPECT_EQ(agent.WaitForEnd(), 0);
}

// ---- The rest ----

TEST(Agent, DialsAPortInside) {
  AgentDriver agent;
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto dial = agent.Request(wire::Dial{.port = ntohs(address.sin_port)});
  agent.session().Write(dial, wire::DataKind::kBytes, AsBytes("hello"));
  agent.session().Finish(dial);
  agent.Until([&] { return agent[dial].Find<wire::Opened>() != nullptr; });
  const Fd served(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  std::string got;
  char buffer[64];
  for (ssize_t n = 0; (n = ::read(served.get(), buffer, sizeof buffer)) > 0;) {
    got.append(buffer, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(got, "hello");
  ASSERT_EQ(::write(served.get(), "world", 5), 5);
  ::shutdown(served.get(), SHUT_WR);
  EXPECT_EQ(agent.Finish(dial).out, "world");
}

TEST(Agent, ADeadPortIsRefusedAtOnce) {
  AgentDriver agent;
  const Arrived& dial = agent.Run(wire::Dial{.port = 1});
  ASSERT_TRUE(dial.Find<Failed>());
  EXPECT_EQ(dial.Find<Failed>()->code, Errc::kUnavailable);
}

TEST(Agent, StatsAreThere) {
  AgentDriver agent;
  const auto* stats = agent.Run(wire::GetStats{}).Find<wire::Stats>();
  ASSERT_TRUE(stats);
  EXPECT_GT(stats->cpu_count, 0U);
  EXPECT_GT(stats->memory_total_bytes, 0U);
  EXPECT_GT(stats->disk_total_bytes, 0U);
}

}  // namespace
}  // namespace soma::guest
