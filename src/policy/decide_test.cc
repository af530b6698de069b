// SPDX-License-Identifier: Apache-2.0
#include "policy/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/address.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {
namespace {

using testing::HasSubstr;

Policy LoadToml(std::string_view user, std::string_view project = "",
                const CommandLineRules& options = {}) {
  std::vector<Source> sources;
  if (!user.empty()) {
    sources.push_back({LayerKind::kUser, Format::kToml, "user.toml", std::string(user)});
  }
  if (!project.empty()) {
    sources.push_back({LayerKind::kProject, Format::kToml, ".soma.toml", std::string(project)});
  }
  auto policy = Load({.home = "/home/u", .workspace = "/home/u/proj"}, sources, options);
  EXPECT_TRUE(policy) << policy.error().message();
  return policy ? *policy : Policy{};
}

ConnectRequest To(std::string name, std::uint16_t port) {
  return {std::move(name), std::nullopt, port};
}
ConnectRequest ToAddress(const char* text, std::uint16_t port) {
  return {"", ParseIpAddress(text), port};
}

TEST(NormalPath, ResolvesByText) {
  EXPECT_EQ(NormalPath("/a//b/./c/../d/"), "/a/b/d");
  EXPECT_EQ(NormalPath("/../.."), "/");
  EXPECT_EQ(NormalPath("a"), std::nullopt);
  EXPECT_EQ(NormalPath(""), std::nullopt);
  EXPECT_EQ(NormalPath(std::string_view("/a\0b", 4)), std::nullopt);
  EXPECT_EQ(NormalPath(std::string(5000, '/')), std::nullopt);
}

TEST(DecidePath, DevHidesHomeAndLetsTheWorkspaceBeWritten) {
  const Policy policy = LoadToml("");
  EXPECT_EQ(VerdictOn(policy, "/home/u/proj/src/a.c"), PathVerdict::kWrite);
  EXPECT_EQ(VerdictOn(policy, "/home/u/.ssh/id_rsa"), PathVerdict::kHide);
  EXPECT_EQ(VerdictOn(policy, "/home/u/notes"), PathVerdict::kHide);
  EXPECT_EQ(VerdictOn(policy, "/home/other"), PathVerdict::kHide);
  EXPECT_EQ(VerdictOn(policy, "/home/u/.cargo/bin/cargo"), PathVerdict::kRead);
  EXPECT_EQ(VerdictOn(policy, "/usr/bin/gcc"), PathVerdict::kRead);
  EXPECT_EQ(VerdictOn(policy, "/run/docker.sock"), PathVerdict::kHide);
}

TEST(DecidePath, SpellingsOfTheSamePathMakeNoDifference) {
  const Policy policy = LoadToml("");
  for (const char* path :
       {"/home/u/proj/../.ssh/id_rsa", "//home//u/.ssh/./id_rsa", "relative", ""}) {
    EXPECT_EQ(VerdictOn(policy, path), PathVerdict::kHide) << path;
  }
}

TEST(DecidePath, RefusalNamesRuleOriginAndRemedy) {
  const Decision decision = DecidePath(LoadToml(""), "/etc/passwd", Access::kWrite);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.rule, "read \"/etc\"");
  EXPECT_THAT(decision.origin.ToText(), HasSubstr("built-in dev:"));
  EXPECT_THAT(decision.remedy, HasSubstr("--write /etc/passwd"));

  const Decision hidden = DecidePath(LoadToml(""), "/home/u/.ssh/id_rsa", Access::kRead);
  EXPECT_EQ(hidden.rule, "hide \"/home/u/.ssh\"");
}

TEST(DecidePath, TheRemedyReallyAllows) {
  CommandLineRules options;
  options.write = {"/etc/foo"};
  options.read = {"~/.ssh/config"};
  const Policy policy = LoadToml("", "", options);
  EXPECT_TRUE(DecidePath(policy, "/etc/foo/x", Access::kWrite).allowed);
  EXPECT_TRUE(DecidePath(policy, "/home/u/.ssh/config", Access::kRead).allowed);
  EXPECT_FALSE(DecidePath(policy, "/home/u/.ssh/id_rsa", Access::kRead).allowed);
}

TEST(DecidePath, ProjectNarrowsAndIsBlamed) {
  const Policy policy = LoadToml("", "[filesystem]\nread = [\"docs\"]\nhide = [\"**/.env\"]\n");
  const Decision decision = DecidePath(policy, "/home/u/proj/docs/x", Access::kWrite);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.origin.ToText(), ".soma.toml:2");
  EXPECT_THAT(decision.remedy, HasSubstr(".soma.toml:2"));
  EXPECT_EQ(VerdictOn(policy, "/home/u/proj/a/.env"), PathVerdict::kHide);
  EXPECT_EQ(VerdictOn(policy, "/home/u/proj/src"), PathVerdict::kWrite);
}

TEST(DecidePath, LaterLayersWinAtTheSamePath) {
  EXPECT_EQ(VerdictOn(LoadToml("[filesystem]\nread = [\"~/.ssh\"]\n"), "/home/u/.ssh/x"),
            PathVerdict::kRead);
}

TEST(NormalHostName, FoldsAndRefuses) {
  EXPECT_EQ(NormalHostName("Example.COM."), "example.com");
  EXPECT_EQ(NormalHostName("_srv.example.com"), "_srv.example.com");
  const std::string long_label(64, 'a');
  for (const std::string& text : {std::string(), std::string("."), std::string("a..b"),
                                  std::string("-a.b"), std::string("a b"), std::string("a\0b", 3),
                                  long_label, std::string("ex\xc3\xa4mple.com")}) {
    EXPECT_EQ(NormalHostName(text), std::nullopt) << text;
  }
}

TEST(DecideConnect, DefaultIsDeny) {
  const Policy policy = LoadToml("");
  const Decision decision = DecideConnect(policy, To("example.com", 443));
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.rule, "default \"deny\"");
  EXPECT_THAT(decision.remedy, HasSubstr("--allow-net example.com:443"));
  EXPECT_FALSE(MayUseNetwork(policy));
}

TEST(DecideConnect, MatchesNamesAndPorts) {
  const Policy policy = LoadToml("[network]\nallow = [\"pypi.org:443\", \"*.debian.org\"]\n");
  EXPECT_TRUE(DecideConnect(policy, To("PyPI.org.", 443)).allowed);
  EXPECT_FALSE(DecideConnect(policy, To("pypi.org", 80)).allowed);
  EXPECT_FALSE(DecideConnect(policy, To("evil-pypi.org", 443)).allowed);
  EXPECT_TRUE(DecideConnect(policy, To("deb.debian.org", 80)).allowed);
  EXPECT_FALSE(DecideConnect(policy, To("debian.org", 80)).allowed);
  EXPECT_FALSE(DecideConnect(policy, To("notdebian.org", 80)).allowed);
  EXPECT_FALSE(DecideConnect(policy, To("deb.debian.org", 0)).allowed);
  EXPECT_TRUE(DecideLookup(policy, "pypi.org").allowed);
  EXPECT_FALSE(DecideLookup(policy, "secret-data.evil.com").allowed);
  EXPECT_TRUE(MayUseNetwork(policy));
}

TEST(DecideConnect, DenyBeatsAllowWhateverTheOrder) {
  const Policy policy =
      LoadToml("[network]\ndefault = \"allow\"\nallow = [\"*.a.com\"]\ndeny = [\"x.a.com\"]\n");
  const Decision decision = DecideConnect(policy, To("x.a.com", 443));
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.origin.ToText(), "user.toml:4");
  EXPECT_TRUE(DecideConnect(policy, To("y.a.com", 443)).allowed);
  EXPECT_FALSE(DecideLookup(policy, "x.a.com").allowed);
}

TEST(DecideConnect, DenyOfOnePortLeavesTheNameAskable) {
  const Policy policy = LoadToml("[network]\nallow = [\"a.com\"]\ndeny = [\"a.com:25\"]\n");
  EXPECT_TRUE(DecideLookup(policy, "a.com").allowed);
  EXPECT_FALSE(DecideConnect(policy, To("a.com", 25)).allowed);
}

TEST(DecideConnect, SpecialAddressesNeedANameByNetwork) {
  const Policy open = LoadToml("[network]\ndefault = \"allow\"\nallow = [\"*\", \"0.0.0.0/0\"]\n");
  for (const char* address : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1",
                              "fe80::1", "64:ff9b::7f00:1", "0.0.0.0"}) {
    EXPECT_FALSE(DecideConnect(open, ToAddress(address, 80)).allowed) << address;
  }
  EXPECT_TRUE(DecideConnect(open, ToAddress("8.8.8.8", 53)).allowed);
  const Policy named = LoadToml("[network]\nallow = [\"127.0.0.1:5432\"]\n");
  EXPECT_TRUE(DecideConnect(named, ToAddress("127.0.0.1", 5432)).allowed);
  EXPECT_TRUE(DecideConnect(named, ToAddress("::ffff:127.0.0.1", 5432)).allowed);
  EXPECT_FALSE(DecideConnect(named, ToAddress("127.0.0.1", 22)).allowed);
}

TEST(DecideDial, ANameThatResolvesInwardsIsRefused) {
  const Policy policy = LoadToml("[network]\nallow = [\"rebind.com\"]\n");
  const std::vector<IpAddress> own = {*ParseIpAddress("198.41.0.4")};
  const ConnectRequest request = To("rebind.com", 443);
  EXPECT_TRUE(DecideDial(policy, request, *ParseIpAddress("8.8.8.8"), own).allowed);
  for (const char* address : {"127.0.0.1", "192.168.1.1", "169.254.169.254", "198.41.0.4", "::1"}) {
    EXPECT_FALSE(DecideDial(policy, request, *ParseIpAddress(address), own).allowed) << address;
  }
  const Policy corporate = LoadToml("[network]\nallow = [\"git.corp\", \"10.1.0.0/16:443\"]\n");
  EXPECT_TRUE(DecideDial(corporate, To("git.corp", 443), *ParseIpAddress("10.1.2.3"), own).allowed);
  EXPECT_FALSE(DecideDial(corporate, To("git.corp", 22), *ParseIpAddress("10.1.2.3"), own).allowed);
}

TEST(DecideDial, ADeniedNetworkIsNotReachedThroughAnAddressThatCarriesOne) {
  const Policy policy = LoadToml("[network]\nallow = [\"*\"]\ndeny = [\"93.184.0.0/16\"]\n");
  const ConnectRequest by_name{.name = "svc.example", .port = 80};
  for (const char* text : {"93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::1"}) {
    const IpAddress address = *ParseIpAddress(text);
    EXPECT_FALSE(DecideConnect(policy, {.address = address, .port = 80}).allowed) << text;
    EXPECT_FALSE(DecideDial(policy, by_name, address, {}).allowed) << text;
  }
  const IpAddress own[] = {*ParseIpAddress("93.185.0.1")};
  EXPECT_FALSE(DecideDial(policy, by_name, *ParseIpAddress("64:ff9b::5db9:1"), own).allowed);
  EXPECT_TRUE(DecideDial(policy, by_name, *ParseIpAddress("64:ff9b::5db9:2"), own).allowed);
}

TEST(DecideDial, DeniedNetworksHoldForNamesToo) {
  const Policy policy = LoadToml("[network]\ndefault = \"allow\"\ndeny = [\"8.8.8.0/24\"]\n");
  EXPECT_FALSE(DecideDial(policy, To("dns.google", 443), *ParseIpAddress("8.8.8.8"), {}).allowed);
  EXPECT_TRUE(DecideDial(policy, To("dns.google", 443), *ParseIpAddress("8.8.4.4"), {}).allowed);
}

TEST(DecideConnect, ProjectCanOnlyNarrowTheNetwork) {
  const std::string_view user = "[network]\nallow = [\"a.com\", \"b.com\"]\n";
  const Policy policy =
      LoadToml(user, "[network]\ndefault = \"allow\"\nallow = [\"a.com\", \"c.com\"]\n");
  EXPECT_TRUE(DecideConnect(policy, To("a.com", 1)).allowed);
  EXPECT_TRUE(DecideConnect(policy, To("b.com", 1)).allowed);  // default = "allow" narrows nothing
  EXPECT_FALSE(DecideConnect(policy, To("c.com", 1)).allowed);
  ASSERT_EQ(policy.notices.size(), 1U);
  EXPECT_THAT(policy.notices[0], HasSubstr("c.com"));
  const Policy only = LoadToml(user, "[network]\nallow = [\"a.com\"]\n");
  EXPECT_FALSE(DecideConnect(only, To("b.com", 1)).allowed);
}

TEST(PassesEnvironment, IsAnAllowlist) {
  const Policy policy = LoadToml("[environment]\npass = [\"MY_*\"]\ndrop = [\"MY_TOKEN\"]\n");
  EXPECT_TRUE(PassesEnvironment(policy, "PATH"));
  EXPECT_TRUE(PassesEnvironment(policy, "LC_ALL"));
  EXPECT_TRUE(PassesEnvironment(policy, "MY_X"));
  EXPECT_FALSE(PassesEnvironment(policy, "MY_TOKEN"));
  EXPECT_FALSE(PassesEnvironment(policy, "AWS_SECRET_ACCESS_KEY"));
  EXPECT_FALSE(PassesEnvironment(policy, "LD_PRELOAD"));
}

}  // namespace
}  // namespace soma::policy
