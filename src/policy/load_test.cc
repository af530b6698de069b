// SPDX-License-Identifier: Apache-2.0
#include "policy/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/decide.h"
#include "policy/level.h"
#include "policy/model.h"

namespace soma::policy {
namespace {

using testing::HasSubstr;

const Context kContext{.home = "/home/u", .workspace = "/w"};

Result<Policy> LoadOne(std::string_view text, Format format = Format::kToml,
                       LayerKind kind = LayerKind::kUser, const CommandLineRules& options = {}) {
  const std::vector<Source> sources = {{kind, format, "p", std::string(text)}};
  return Load(kContext, sources, options);
}

std::string ErrorOf(std::string_view text, Format format = Format::kToml,
                    LayerKind kind = LayerKind::kUser) {
  const auto policy = LoadOne(text, format, kind);
  return policy ? "no error" : policy.error().message();
}

struct BadCase {
  std::string_view text;
  std::string_view message;
};

TEST(Load, EveryMistakeIsAnErrorWithItsLine) {
  const std::vector<BadCase> cases = {
      {"x = 1", "p:1: unknown key \"x\" in the file"},
      {"[filesystem]\n\nreads = []", "p:3: unknown key \"reads\" in [filesystem]"},
      {"[filesystem]\nread = \"/x\"", "p:2: read must be a list, not a string"},
      {"[filesystem]\nread = [\n \"/x\",\n 3]", "p:4: read must be a list of strings"},
      {"[filesystem]\nread=[\"/x\"]\nhide=[\"/y\",\n\"/x/\"]", "p:4: hide: \"/x/\" contradicts"},
      {"[filesystem]\nread = [\"~bob/x\"]", "another user's home"},
      {"[filesystem]\nwrite = [\"/x/*\"]", "only hide understands"},
      {"[filesystem]\ndefault = \"write\"", "must be \"read\" or \"hide\""},
      {"[filesystem]\nread = [\"a\\nb\"]", "control character"},
      {"[network]\nallow = [\"https://x.com\"]", "is a URL"},
      {"[network]\nallow = [\"x.com:0\"]", "port"},
      {"[network]\nallow = [\"10.0.0.1/8\"]", "bits behind the prefix"},
      {"[network]\nallow = [\"a.*.com\"]", "no host name"},
      {"[network]\nallow = [\"127.1\"]", "no host name"},
      {"[network]\nallow = [\"x.com\"]\ndeny = [\"X.com.\"]", "p:3: deny: \"X.com.\" is both"},
      {"[limits]\nmemory = \"lots\"", "memory must be a size"},
      {"[limits]\npids = 0", "pids must be"},
      {"[limits]\ncpu = 0", "cpu must be"},
      {"[limits]\ntime = true", "p:2: time must be a string or a number"},
      {"[isolation]\nlevel = \"vm\"", "p:2: level must be"},
      {"[isolation]\nminimum = \"emulated\"", "minimum must be"},
      {"[isolation]\nlevel = \"process\"\nminimum = \"microvm\"",
       "p:2: level \"process\" is below"},
      {"[environment]\npass = [\"A\"]\ndrop = [\"A\"]", "dropped and also passed"},
      {"[environment.set]\nA = 1", "p:2: set: the value of \"A\" must be a string"},
      {"[environment.set]\n\"A=B\" = \"\"", "no variable's name"},
      {"[task]\nprofile = \"root\"", "p:2: profile must be"},
      {"[task]\nephemeral = \"yes\"", "ephemeral must be true or false"},
      {"profile = \"prod\"", "p:1: there is no built-in profile \"prod\""},
      {"a = [", "p:1: "},
      {"a = 1\na = 2", "p:2: "},
      {"filesystem = 3", "filesystem must be a table"},
      {"\xff", "UTF-8"},
  };
  for (const BadCase& bad : cases) {
    EXPECT_THAT(ErrorOf(bad.text), HasSubstr(std::string(bad.message))) << bad.text;
  }
}

TEST(Load, JsonHasTheSameModelAndLines) {
  const auto policy = LoadOne(R"({"filesystem": {"read": ["/x"], "write": ["~/y"]},
      "network": {"allow": ["a.com:443"]}, "limits": {"cpu": 1.5, "pids": 10}})",
                              Format::kJson);
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->limits.cpu_milli->value, 1500U);
  EXPECT_EQ(VerdictOn(*policy, "/home/u/y"), PathVerdict::kWrite);
  EXPECT_EQ(policy->network.front().rules.front().origin.ToText(), "p:2");
}

TEST(Load, JsonMistakesHaveTheirLine) {
  const std::vector<BadCase> cases = {
      {"{\n\"x\": 1}", "p:2: unknown key \"x\""},
      {"{\"filesystem\":\n{\"read\": [\n\"/a\",\n1]}}", "p:4: read must be a list of strings"},
      {"{\n\n\"a\": tru}", "p:3: "},
      {"[]", "must be an object"},
      {"{\"profile\": \"dev\",\n\"profile\": \"dev\"}", "p:2: "},
      {"{\"limits\": {\"a:\\\"{\": \"x\"}}", "p:1: unknown key"},
  };
  for (const BadCase& bad : cases) {
    EXPECT_THAT(ErrorOf(bad.text, Format::kJson), HasSubstr(std::string(bad.message))) << bad.text;
  }
}

TEST(Load, BoundsSizeAndDepth) {
  EXPECT_THAT(ErrorOf(std::string(kPolicyFileBytesMax + 1, '#')), HasSubstr("larger than 256 KiB"));
  std::string dots = "a";
  for (int i = 0; i < 100'000; ++i) dots += ".a";
  EXPECT_THAT(ErrorOf(dots + " = 1"), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("[" + dots + "]"), HasSubstr("nested too deeply"));
  EXPECT_THAT(ErrorOf("x = [\"\"\"a\n#\"\"\"\"\", {" + dots + " = 1}]"),
              HasSubstr("p:2: is nested too deeply"));
  EXPECT_THAT(ErrorOf("x = " + std::string(1000, '[')), HasSubstr("p:1: "));
  EXPECT_THAT(ErrorOf(std::string(1000, '['), Format::kJson), HasSubstr("p:1: "));
}

TEST(Load, AllBuiltinProfilesAreValid) {
  EXPECT_EQ(BuiltinProfiles().size(), 3U);
  for (const std::string_view name : BuiltinProfiles()) {
    CommandLineRules options;
    options.profile = name;
    const auto policy = Load(kContext, {}, options);
    ASSERT_TRUE(policy) << policy.error().message();
    EXPECT_EQ(policy->profile, name);
    EXPECT_FALSE(MayUseNetwork(*policy)) << name;
    EXPECT_EQ(VerdictOn(*policy, "/home/u/.ssh"), PathVerdict::kHide) << name;
    EXPECT_EQ(VerdictOn(*policy, "/w/x"), PathVerdict::kWrite) << name;
    EXPECT_EQ(VerdictOn(*policy, "/usr/bin/env"), PathVerdict::kRead) << name;
    EXPECT_TRUE(Load({.home = "", .workspace = "/w"}, {}, options)) << name;
  }
}

TEST(Load, MinimumIsOnlyRaised) {
  const std::vector<Source> sources = {
      {LayerKind::kSystem, Format::kToml, "s", "[isolation]\nminimum = \"microvm\""},
      {LayerKind::kUser, Format::kToml, "u", "[isolation]\nminimum = \"process\""},
      {LayerKind::kProject, Format::kToml, "q", "[isolation]\nminimum = \"container\""}};
  const auto policy = Load(kContext, sources, {});
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->isolation.minimum.value, Level::kMicrovm);
  EXPECT_EQ(policy->isolation.minimum.origin.ToText(), "s:2");
}

TEST(Load, ProjectMayNotChooseProfileOrLock) {
  EXPECT_THAT(ErrorOf("profile = \"dev\"", Format::kToml, LayerKind::kProject),
              HasSubstr("p:1: profile belongs into a system or user file"));
  EXPECT_THAT(ErrorOf("locked = true", Format::kToml, LayerKind::kProject),
              HasSubstr("p:1: locked belongs into"));
}

TEST(Load, LockedSystemFileBindsUserAndCommandLine) {
  const std::vector<Source> sources = {
      {LayerKind::kSystem, Format::kToml, "/etc/soma/policy.toml", "locked = true"},
      {LayerKind::kUser, Format::kToml, "u",
       "[filesystem]\nwrite = [\"/etc\"]\n[limits]\nmemory = \"1T\""}};
  const auto policy = Load(kContext, sources, {});
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(VerdictOn(*policy, "/etc/x"), PathVerdict::kRead);
  EXPECT_EQ(policy->limits.memory_bytes->value, 4ULL << 30);
  CommandLineRules options;
  options.write = {"/etc"};
  const auto refused = Load(kContext, sources, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("--write is refused: /etc/soma/policy.toml:1"));
}

TEST(Load, CommandLineOptionsAreChecked) {
  const auto error_of = [](const CommandLineRules& options) {
    const auto policy = Load(kContext, {}, options);
    return policy ? std::string("no error") : policy.error().message();
  };
  EXPECT_THAT(error_of({.isolation = "vm"}), HasSubstr("--isolation must be"));
  EXPECT_THAT(error_of({.memory = "x"}), HasSubstr("--memory must be"));
  EXPECT_THAT(error_of({.time = "soon"}), HasSubstr("--timeout must be"));
  EXPECT_THAT(error_of({.set_env = {"X"}}), HasSubstr("not NAME=VALUE"));
  EXPECT_THAT(error_of({.read = {"/a"}, .write = {"/a"}}), HasSubstr("contradicts"));
  EXPECT_THAT(error_of({.profile = "x"}), HasSubstr("no built-in profile"));
}

TEST(Load, NoticesWhatAProjectCannotHave) {
  const auto policy = LoadOne(
      "[isolation]\nlevel = \"none\"\n[filesystem]\nwrite = [\"/etc\"]\n[limits]\nmemory = \"1T\"",
      Format::kToml, LayerKind::kProject);
  ASSERT_TRUE(policy);
  EXPECT_FALSE(policy->isolation.level);
  EXPECT_EQ(policy->limits.memory_bytes->value, 4ULL << 30);
  EXPECT_EQ(policy->notices.size(), 2U);
}

}  // namespace
}  // namespace soma::policy
