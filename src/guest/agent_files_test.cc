// SPDX-License-Identifier: Apache-2.0
// Files and watches of a real agent in a child process.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sanitized.h"
#include "base/text.h"
#include "guest/agent_driver.h"
#include "guest/agent_test_support.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

using wire::Exit;
using wire::Failed;

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
  if (kSanitized) {
    std::puts("memory is not looked at: a sanitizer keeps what was freed");
  } else {
    EXPECT_LT(after, before + 4'000'000);
  }
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

}  // namespace
}  // namespace soma::guest
