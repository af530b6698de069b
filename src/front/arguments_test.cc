// SPDX-License-Identifier: Apache-2.0
#include "front/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"

namespace soma::front {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<RunOptions> Parse(std::initializer_list<std::string_view> words) {
  return ParseRunArguments(std::span(words.begin(), words.size()));
}
std::string ErrorOf(std::initializer_list<std::string_view> words) {
  const auto options = Parse(words);
  return options ? "no error" : options.error().message();
}

TEST(RunArguments, TakesOptionsInEveryForm) {
  const auto options = Parse({"-it", "-C", "/w", "--memory=1G", "--pids", "10", "--read", "/a",
                              "--read=/b", "-eA=B", "-q", "--", "make", "-j2"});
  ASSERT_TRUE(options) << options.error().message();
  EXPECT_TRUE(options->terminal);
  EXPECT_TRUE(options->interactive);
  EXPECT_TRUE(options->quiet);
  EXPECT_EQ(options->workspace, "/w");
  EXPECT_EQ(options->rules.memory, "1G");
  EXPECT_EQ(options->rules.pids, "10");
  EXPECT_THAT(options->rules.read, ElementsAre("/a", "/b"));
  EXPECT_THAT(options->rules.set_env, ElementsAre("A=B"));
  EXPECT_THAT(options->command, ElementsAre("make", "-j2"));
}

TEST(RunArguments, TheFirstPlainWordIsTheCommand) {
  const auto options = Parse({"ls", "--json", "-q"});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->json);
  EXPECT_THAT(options->command, ElementsAre("ls", "--json", "-q"));
  EXPECT_THAT(Parse({"--", "--json"})->command, ElementsAre("--json"));
  EXPECT_THAT(Parse({"-"})->command, ElementsAre("-"));
}

TEST(RunArguments, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf({}), HasSubstr("no command given"));
  EXPECT_THAT(ErrorOf({"--"}), HasSubstr("no command given"));
  EXPECT_THAT(ErrorOf({"--", ""}), HasSubstr("empty word"));
  EXPECT_THAT(ErrorOf({"--nope", "x"}), HasSubstr("--nope is no option"));
  EXPECT_THAT(ErrorOf({"-x", "x"}), HasSubstr("-x is no option"));
  EXPECT_THAT(ErrorOf({"--memory"}), HasSubstr("--memory needs a value"));
  EXPECT_THAT(ErrorOf({"-C"}), HasSubstr("-C needs a value"));
  EXPECT_THAT(ErrorOf({"--json=1", "x"}), HasSubstr("takes no value"));
  EXPECT_THAT(ErrorOf({"--\x1b[0m", "x"}), HasSubstr("\\x1b"));
}

TEST(RunArguments, HelpNeedsNoCommandAndNamesEveryOption) {
  ASSERT_TRUE(Parse({"--help"}));
  for (const char* option :
       {"--workspace", "--read", "--write", "--allow-net", "--env", "--profile", "--policy",
        "--isolation", "--memory", "--pids", "--timeout", "--tty", "--interactive", "--report",
        "--json", "--quiet", "--explain", "--help"}) {
    EXPECT_THAT(std::string(RunHelp()), HasSubstr(option));
  }
}

TEST(Arguments, AnEmptyValueIsRefused) {
  for (const std::vector<std::string_view>& words :
       {std::vector<std::string_view>{"-C", "", "true"},
        {"--workspace=", "true"},
        {"--read", "", "true"},
        {"--report=", "true"}}) {
    const auto options = ParseRunArguments(words);
    ASSERT_FALSE(options);
    EXPECT_THAT(options.error().message(), testing::HasSubstr("not empty"));
  }
}

}  // namespace
}  // namespace soma::front
