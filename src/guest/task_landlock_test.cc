// SPDX-License-Identifier: Apache-2.0
// What only Landlock stands in the way of, each with the wall and without it.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/text.h"
#include "guest/agent_driver.h"
#include "sys/landlock.h"
#include "wire/message.h"

namespace soma::guest {
namespace {

class TaskLandlock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sys::LandlockAbi() == 0) GTEST_SKIP() << "this kernel has no Landlock";
  }
  void TearDown() override { ::unsetenv("SOMA_TEST_WITHOUT"); }
  static void SwitchOff() { ::setenv("SOMA_TEST_WITHOUT", "landlock", 1); }
};

// Everybody may write there, but it is neither the task's home nor a place for temporary files.
constexpr const char* kOpenPlace = "/run/lock";

TEST_F(TaskLandlock, AStrictTaskWritesOnlyWhereItsWorkIs) {
  if (::access(kOpenPlace, W_OK) != 0) GTEST_SKIP() << kOpenPlace << " is not writable here";
  const std::string file = StrCat(kOpenPlace, "/soma-test-", ::getpid());
  const std::string attempt = StrCat("echo x > ", file, " && rm ", file, " && echo written");
  {
    AgentDriver agent;
    EXPECT_EQ(agent.Run(Command(attempt)).out, "");
    EXPECT_EQ(agent.Run(Command("f=$(mktemp) && echo kept > $f && cat $f && rm $f")).out, "kept\n");
    wire::Start there = Command(attempt);
    there.workdir = kOpenPlace;
    EXPECT_EQ(agent.Run(there).out, "written\n");
    wire::Start everywhere = Command(attempt);
    everywhere.workdir = "/";
    EXPECT_EQ(agent.Run(everywhere).out, "");
    // A task can make such a link and be followed to it by the next one.
    const std::string link = StrCat("/tmp/soma-test-root-", ::getpid());
    ASSERT_EQ(::symlink("/", link.c_str()), 0);
    everywhere.workdir = link;
    EXPECT_EQ(agent.Run(everywhere).out, "");
    ::unlink(link.c_str());
  }
  SwitchOff();
  AgentDriver without;
  EXPECT_EQ(without.Run(Command(attempt)).out, "written\n");
}

TEST_F(TaskLandlock, AStrictTaskReachesNoOtherTask) {
  // Landlock's scopes, linux/landlock.h
  if (sys::LandlockAbi() < 6) GTEST_SKIP() << "this kernel's Landlock has no scopes";
  const auto signals_another = [] {
    AgentDriver agent;
    const auto other = agent.Request(Command("sleep 100"));
    agent.Until([&] { return agent[other].Find<wire::Started>() != nullptr; });
    const std::uint32_t pid = agent[other].Find<wire::Started>()->pid;
    return agent.Run(Command(StrCat("kill -0 ", pid, " && echo reached"))).out == "reached\n";
  };
  EXPECT_FALSE(signals_another());
  SwitchOff();
  EXPECT_TRUE(signals_another());
}

}  // namespace
}  // namespace soma::guest
