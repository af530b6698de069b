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
#include <fstream>
#include <ios>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "guest/agent_driver.h"
#include "guest/egress_gate.h"
#include "guest/output_ring.h"
#include "guest/task_table.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

using wire::Exit;
using wire::Failed;

// A directory that is gone afterwards, writable for everybody.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = "/tmp/soma-guest-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    ::chmod(path_.c_str(), 0777);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return StrCat(path_, "/", name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Contents(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::uint64_t AgentMemory(int pid, const char* field) {
  std::ifstream file(StrCat("/proc/", pid, "/smaps_rollup"));
  for (std::string word; file >> word;) {
    std::uint64_t value = 0;
    if (word == field && file >> value) return value * 1024;
  }
  return 0;
}

std::vector<wire::Record> Records(const std::string& bytes) {
  wire::RecordReader reader;
  reader.Append(AsBytes(bytes));
  std::vector<wire::Record> records;
  for (auto record = reader.Next(); record && *record; record = reader.Next()) {
    records.push_back(**record);
  }
  return records;
}

std::uint32_t PidOf(AgentDriver& agent, wire::ChannelId channel) {
  agent.Until([&] { return agent[channel].Find<wire::Started>() != nullptr; });
  return agent[channel].Find<wire::Started>()->pid;
}

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
  wire::Start start = Command("sleep 300");
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
  constexpr std::size_t kRounds = 50;
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

// ---- Files ----

void WriteFile(AgentDriver& agent, wire::WriteFile request, std::string_view content,
               wire::ChannelId& channel) {
  channel = agent.Request(std::move(request));
  agent.Until([&] { return agent[channel].closed || agent[channel].Find<wire::Opened>(); });
  std::size_t sent = 0;
  agent.Until([&] {
    sent += agent.session().Write(channel, wire::DataKind::kBytes, AsBytes(content.substr(sent)));
    return sent == content.size() || agent[channel].closed;
  });
  agent.session().Finish(channel);
  agent.Finish(channel);
}

TEST(AgentFiles, ABigFileGoesBothWaysWithFlatMemory) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  const std::uint64_t before = AgentMemory(agent.pid(), "Private_Dirty:");
  std::string content;
  content.resize(20'000'000);
  std::mt19937 random(1);
  for (char& byte : content) byte = static_cast<char>(random());
  wire::ChannelId written = 0;
  WriteFile(agent, {.path = directory / "a/b/big"}, content, written);
  ASSERT_TRUE(agent[written].Find<wire::Entry>());
  EXPECT_EQ(agent[written].Find<wire::Entry>()->info.size, content.size());
  EXPECT_EQ(Contents(directory / "a/b/big"), content);
  const Arrived& read = agent.Run(wire::ReadFile{.path = directory / "a/b/big"});
  EXPECT_EQ(read.out, content);
  EXPECT_EQ(read.Find<wire::Opened>()->info.size, content.size());
  const std::uint64_t after = AgentMemory(agent.pid(), "Private_Dirty:");
  EXPECT_LT(after, before + 4'000'000);
  // The program itself, not a copy of the test, once it is idle again (SPECIFICATION.md): the last
  // frames of a transfer may still be on their way when its end has arrived here.
  constexpr std::uint64_t kPrivateMax = std::uint64_t{1} << 20;
  if (::getenv("SOMA_GUEST_PROGRAM") != nullptr) {
    agent.Until([&] { return AgentMemory(agent.pid(), "Private_Dirty:") < kPrivateMax; });
  }
}

TEST(AgentFiles, RangesAndTheEmptyFile) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  wire::ChannelId channel = 0;
  WriteFile(agent, {.path = directory / "f"}, "0123456789", channel);
  EXPECT_EQ(agent.Run(wire::ReadFile{.path = directory / "f", .offset = 3, .length = 4}).out,
            "3456");
  EXPECT_EQ(agent.Run(wire::ReadFile{.path = directory / "f", .offset = 99}).out, "");
  WriteFile(agent, {.path = directory / "f"}, "", channel);
  EXPECT_EQ(agent[channel].Find<wire::Entry>()->info.size, 0U);
  const Arrived& proc = agent.Run(wire::ReadFile{.path = "/proc/self/status"});
  EXPECT_NE(proc.out.find("Name:"), std::string::npos);
}

TEST(AgentFiles, AnAtomicWriteReplacesAtTheEndOrNotAtAll) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  std::ofstream(directory / "f") << "old";
  const auto channel = agent.Request(wire::WriteFile{.path = directory / "f", .atomic = true});
  agent.Until([&] { return agent[channel].Find<wire::Opened>() != nullptr; });
  agent.session().Write(channel, wire::DataKind::kBytes, AsBytes("new"));
  agent.session().Abort(channel, Errc::kCancelled, "");
  EXPECT_TRUE(agent.Run(wire::Stat{.path = directory / "f"}).Find<wire::Entry>());
  EXPECT_EQ(Contents(directory / "f"), "old");
  EXPECT_EQ(Records(agent.Run(wire::ListDir{.path = directory.path()}).out).size(), 1U);
  wire::ChannelId second = 0;
  WriteFile(agent, {.path = directory / "f", .atomic = true}, "new", second);
  EXPECT_EQ(Contents(directory / "f"), "new");
}

TEST(AgentFiles, TheActingUserOwnsWhatIsMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  AgentDriver agent;
  const TemporaryDirectory directory;
  wire::ChannelId channel = 0;
  WriteFile(agent, {.user = "nobody", .path = directory / "p/f", .metadata = {}}, "x", channel);
  const auto& info = agent[channel].Find<wire::Entry>()->info;
  EXPECT_EQ(info.owner, "nobody");
  EXPECT_EQ(info.mode & 07777, 0644U);
  const auto& parent = agent.Run(wire::Stat{.path = directory / "p"}).Find<wire::Entry>()->info;
  EXPECT_EQ(parent.owner, "nobody");
  EXPECT_EQ(parent.mode & 07777, 0755U);
}

TEST(AgentFiles, ASymlinkIsNotGivenAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  AgentDriver agent;
  const TemporaryDirectory directory;
  std::ofstream(directory / "target") << "x";
  std::filesystem::create_symlink(directory / "target", directory / "link");
  wire::ChannelId channel = 0;
  WriteFile(agent, {.user = "nobody", .path = directory / "link"}, "y", channel);
  EXPECT_EQ(Contents(directory / "target"), "y");
  EXPECT_EQ(agent.Run(wire::Stat{.path = directory / "target"}).Find<wire::Entry>()->info.owner,
            "root");
}

TEST(AgentFiles, ErrorsAreThoseOfE2B) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "x";
  std::filesystem::create_symlink(directory / "loop", directory / "loop");
  const auto code = [&](const wire::Message& request) {
    const auto* failed = agent.Run(request).Find<Failed>();
    return failed == nullptr ? std::optional<Errc>() : failed->code;
  };
  EXPECT_EQ(code(wire::Stat{.path = directory / "none"}), Errc::kNotFound);
  EXPECT_EQ(code(wire::MakeDir{.path = directory.path()}), Errc::kAlreadyExists);
  EXPECT_EQ(code(wire::MakeDir{.path = directory / "file"}), Errc::kInvalidArgument);
  EXPECT_EQ(code(wire::ListDir{.path = directory / "file"}), Errc::kInvalidArgument);
  EXPECT_EQ(code(wire::ListDir{.path = directory / "none"}), Errc::kNotFound);
  EXPECT_EQ(code(wire::ListDir{.path = directory / "loop"}), Errc::kFailedPrecondition);
  EXPECT_EQ(code(wire::Move{.source = directory / "none", .destination = directory / "x"}),
            Errc::kNotFound);
  EXPECT_EQ(code(wire::ReadFile{.path = directory.path()}), Errc::kInvalidArgument);
  EXPECT_EQ(code(wire::ReadFile{.path = directory / "none"}), Errc::kNotFound);
  EXPECT_EQ(code(wire::WriteFile{.path = directory.path()}), Errc::kInvalidArgument);
  EXPECT_EQ(code(wire::Remove{.path = directory / "none"}), std::nullopt);
  EXPECT_EQ(code(wire::Stat{.user = "no-such-user", .path = "/"}), Errc::kUnauthenticated);
}

TEST(AgentFiles, AFifoDoesNotStopTheAgent) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0666), 0);
  EXPECT_TRUE(agent.Run(wire::ReadFile{.path = directory / "fifo"}).Find<Failed>());
  EXPECT_TRUE(agent.Run(wire::WriteFile{.path = directory / "fifo"}).Find<Failed>());
}

TEST(AgentFiles, ListingMovingAndRemoving) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  EXPECT_TRUE(agent.Run(wire::MakeDir{.path = directory / "b/deep/er"}).Find<wire::Entry>());
  std::ofstream(directory / "a") << "x";
  std::ofstream(directory / "b/x") << "xy";
  std::filesystem::create_symlink("b", directory / "c");
  std::filesystem::create_symlink("nowhere", directory / "d");
  const auto names = [&](std::uint32_t depth) {
    std::string out;
    const auto list = agent.Run(wire::ListDir{.path = directory.path(), .depth = depth});
    for (const wire::Record& record : Records(list.out)) {
      const auto& info = std::get<wire::EntryInfo>(record);
      out += info.path.substr(directory.path().size()) + (info.is_symlink ? "@ " : " ");
    }
    return out;
  };
  EXPECT_EQ(names(1), "/a /b /c@ /d@ ");
  EXPECT_EQ(names(2), "/a /b /b/deep /b/x /c@ /d@ ");
  EXPECT_EQ(names(9), "/a /b /b/deep /b/deep/er /b/x /c@ /d@ ");
  const auto& moved =
      agent.Run(wire::Move{.source = directory / "b", .destination = directory / "new/place"});
  EXPECT_EQ(moved.Find<wire::Entry>()->info.path, directory / "new/place");
  EXPECT_TRUE(agent.Run(wire::Remove{.path = directory / "new"}).Find<wire::Ok>());
  EXPECT_FALSE(std::filesystem::exists(directory / "new"));
}

TEST(AgentFiles, MetadataIsReplacedAsAWhole) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  wire::ChannelId channel = 0;
  WriteFile(agent, {.path = directory / "f", .metadata = {{"a", "1"}, {"b", "2"}}}, "x", channel);
  if (const auto* failed = agent[channel].Find<Failed>()) GTEST_SKIP() << failed->message;
  auto metadata = agent[channel].Find<wire::Entry>()->info.metadata;
  std::ranges::sort(metadata, {}, &wire::KeyValue::key);
  EXPECT_EQ(metadata, (std::vector<wire::KeyValue>{{"a", "1"}, {"b", "2"}}));
  WriteFile(agent, {.path = directory / "f", .metadata = {{"c", "3"}}}, "x", channel);
  EXPECT_EQ(agent[channel].Find<wire::Entry>()->info.metadata,
            (std::vector<wire::KeyValue>{{"c", "3"}}));
}

std::string Events(const std::string& bytes) {
  std::string out;
  for (const wire::Record& record : Records(bytes)) {
    const auto& event = std::get<wire::FileEvent>(record);
    const char* const kinds[] = {"", "create", "write", "remove", "rename", "chmod"};
    out += StrCat(kinds[static_cast<std::size_t>(event.kind)], " ", event.name, "\n");
  }
  return out;
}

TEST(AgentFiles, AWatchTellsWhatChanges) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  const auto watch = agent.Request(wire::Watch{.path = directory.path()});
  agent.Until([&] { return agent[watch].Find<wire::Opened>() != nullptr; });
  std::ofstream(directory / "f") << "x";
  ::chmod((directory / "f").c_str(), 0600);
  std::filesystem::rename(directory / "f", directory / "g");
  std::filesystem::remove(directory / "g");
  agent.Until([&] { return Records(agent[watch].out).size() >= 6; });
  EXPECT_EQ(Events(agent[watch].out), "create f\nwrite f\nchmod f\nrename f\ncreate g\nremove g\n");
}

TEST(AgentFiles, ARecursiveWatchSeesDirectoriesOfAMomentAgo) {
  AgentDriver agent;
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "old");
  const auto watch = agent.Request(wire::Watch{.path = directory.path(), .recursive = true});
  agent.Until([&] { return agent[watch].Find<wire::Opened>() != nullptr; });
  std::filesystem::create_directories(directory / "new/deep");
  std::ofstream(directory / "new/deep/f") << "x";
  std::ofstream(directory / "old/f") << "x";
  agent.Until([&] {
    const std::string events = Events(agent[watch].out);
    return events.find("create new/deep/f\n") != std::string::npos &&
           events.find("create old/f\n") != std::string::npos;
  });
  const auto again = agent.Request(wire::Watch{.path = directory / "none"});
  EXPECT_EQ(agent.Finish(again).Find<Failed>()->code, Errc::kNotFound);
}

// ---- The way out of a virtual machine ----

// A listener or a datagram socket on the loopback, standing in for one that catches everything.
Fd LoopbackSocket(int type, std::uint16_t& port) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int on = 1;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  if (type == SOCK_STREAM) {
    EXPECT_EQ(::listen(socket.get(), 10), 0);
  } else {
    EXPECT_EQ(::setsockopt(socket.get(), SOL_IP, IP_PKTINFO, &on, sizeof on), 0);
  }
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return socket;
}

Fd ConnectTo(int type, std::uint16_t port) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(AgentEgress, AConnectionIsAskedForAndCarried) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.tcp4 = LoopbackSocket(SOCK_STREAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_STREAM, port);
  ASSERT_EQ(::write(client.get(), "GET", 3), 3);
  ::shutdown(client.get(), SHUT_WR);
  agent.Until([&] { return !agent.opened().empty(); });
  const auto& [channel, message] = agent.opened()[0];
  EXPECT_EQ(std::get<wire::Open>(message).host, "127.0.0.1");
  EXPECT_EQ(std::get<wire::Open>(message).port, port);
  // Not a byte before the decision.
  EXPECT_EQ(agent[channel].out, "");
  ASSERT_TRUE(agent.session().Reply(channel, wire::Opened{}));
  agent.Until([&] { return agent[channel].Find<wire::End>() != nullptr; });
  EXPECT_EQ(agent[channel].out, "GET");
  agent.session().Write(channel, wire::DataKind::kBytes, AsBytes("200 OK"));
  agent.session().Finish(channel);
  agent.Run(wire::GetStats{});
  char answer[16] = {};
  EXPECT_EQ(::recv(client.get(), answer, sizeof answer, MSG_WAITALL), 6);
  EXPECT_STREQ(answer, "200 OK");
}

TEST(AgentEgress, ARefusalResets) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.tcp4 = LoopbackSocket(SOCK_STREAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_STREAM, port);
  agent.Until([&] { return !agent.opened().empty(); });
  ASSERT_TRUE(agent.session().Reply(agent.opened()[0].first,
                                    Failed{.code = Errc::kPermissionDenied, .message = "no"}));
  agent.Run(wire::GetStats{});
  char byte = 0;
  EXPECT_EQ(::read(client.get(), &byte, 1), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(AgentEgress, AQueryIsAnsweredFromTheAddressThatWasAsked) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.dns_udp4 = LoopbackSocket(SOCK_DGRAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_DGRAM, port);
  ASSERT_EQ(::write(client.get(), "who?", 4), 4);
  agent.Until([&] { return !agent.opened().empty(); });
  const auto& [channel, message] = agent.opened()[0];
  EXPECT_EQ(AsText(std::get<wire::Datagram>(message).bytes), "who?");
  ASSERT_TRUE(agent.session().Reply(channel, wire::DatagramReply{.bytes = {'m', 'e'}}));
  agent.Run(wire::GetStats{});
  char answer[16] = {};
  EXPECT_EQ(::read(client.get(), answer, sizeof answer), 2);
  EXPECT_STREQ(answer, "me");
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
