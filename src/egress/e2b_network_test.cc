// SPDX-License-Identifier: Apache-2.0
#include "egress/e2b_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::egress {
namespace {

// A server that allows the internet, narrowed by a request.
policy::Policy With(const E2bNetwork& network) {
  const policy::Source source{.kind = policy::LayerKind::kSystem,
                              .format = policy::Format::kToml,
                              .name = "server.toml",
                              .text = "[network]\ndefault = \"allow\"\n"};
  auto policy = policy::Load({.home = "/home/u", .workspace = "/w"}, {&source, 1}, {});
  EXPECT_TRUE(policy) << policy.error().message();
  auto rules = RulesFromE2b(network);
  EXPECT_TRUE(rules) << rules.error().message();
  policy->network.push_back(*std::move(rules));
  return *std::move(policy);
}

bool Allows(const policy::Policy& policy, const std::string& target) {
  policy::ConnectRequest request{.port = 443};
  request.address = policy::ParseIpAddress(target);
  if (!request.address) request.name = target;
  return policy::DecideConnect(policy, request).allowed;
}

TEST(E2bNetwork, WithoutAnythingTheInternetIsOpenAndNothingElse) {
  const policy::Policy policy = With({});
  EXPECT_TRUE(Allows(policy, "example.com"));
  EXPECT_TRUE(Allows(policy, "93.184.216.34"));
  EXPECT_FALSE(Allows(policy, "10.0.0.1"));
  EXPECT_FALSE(Allows(policy, "169.254.169.254"));
}

TEST(E2bNetwork, NoInternetAccessIsDenyAll) {
  for (const E2bNetwork& network :
       {E2bNetwork{.allow_internet_access = false}, E2bNetwork{.deny_out = {"0.0.0.0/0"}}}) {
    const policy::Policy policy = With(network);
    EXPECT_FALSE(Allows(policy, "example.com"));
    EXPECT_FALSE(Allows(policy, "93.184.216.34"));
    EXPECT_FALSE(Allows(policy, "2606:2800:220:1::1"));
  }
}

TEST(E2bNetwork, AllowBeatsDenyAsInE2b) {
  const policy::Policy named =
      With({.allow_out = {"example.com", "*.wild.com", "8.8.8.8"}, .deny_out = {"0.0.0.0/0"}});
  EXPECT_TRUE(Allows(named, "example.com"));
  EXPECT_TRUE(Allows(named, "a.wild.com"));
  EXPECT_TRUE(Allows(named, "8.8.8.8"));
  EXPECT_FALSE(Allows(named, "www.example.com"));
  EXPECT_FALSE(Allows(named, "8.8.4.4"));
  const policy::Policy cut = With({.allow_out = {"8.8.8.8"}, .deny_out = {"8.8.8.0/24"}});
  EXPECT_TRUE(Allows(cut, "8.8.8.8"));
  EXPECT_FALSE(Allows(cut, "8.8.8.9"));
  EXPECT_FALSE(Allows(cut, "8.8.8.7"));
  EXPECT_FALSE(Allows(cut, "8.8.8.255"));
  EXPECT_TRUE(Allows(cut, "8.8.9.1"));
  EXPECT_TRUE(Allows(cut, "example.com"));
}

// A tenant names the host's private network: nothing opens.
TEST(E2bNetwork, CannotOpenWhatTheServerDenies) {
  const policy::Policy policy = With({.allow_out = {"10.0.0.0/8", "169.254.169.254", "127.0.0.1"}});
  for (const char* address : {"10.0.0.1", "169.254.169.254", "127.0.0.1"}) {
    EXPECT_FALSE(Allows(policy, address)) << address;
  }
}

TEST(E2bNetwork, RefusesWhatE2bRefuses) {
  for (const E2bNetwork& network :
       {E2bNetwork{.deny_out = {"example.com"}}, E2bNetwork{.allow_out = {"example.com"}},
        E2bNetwork{.allow_out = {"not a name"}}, E2bNetwork{.allow_out = {"1.2.3.4/33"}},
        E2bNetwork{.allow_out = {""}}, E2bNetwork{.allow_out = {"*"}, .deny_out = {"0.0.0.0/0"}},
        E2bNetwork{.allow_out = std::vector<std::string>(1001, "1.1.1.1")}}) {
    const auto rules = RulesFromE2b(network);
    ASSERT_FALSE(rules);
    EXPECT_EQ(rules.error().code(), Errc::kInvalidArgument);
  }
}

TEST(Subtract, CoversAllButTheHole) {
  const policy::Cidr from = *policy::ParseCidr("10.0.0.0/28");
  const auto parts = Subtract(from, *policy::ParseCidr("10.0.0.5"));
  EXPECT_EQ(parts.size(), 4U);
  for (std::uint32_t i = 0; i < 16; ++i) {
    const policy::IpAddress address = policy::IpAddress::V4(0x0a000000 + i);
    const auto count = std::ranges::count_if(
        parts, [&](const policy::Cidr& part) { return part.Contains(address); });
    EXPECT_EQ(count, i == 5 ? 0 : 1) << i;
  }
  EXPECT_EQ(Subtract(from, *policy::ParseCidr("10.0.1.0/24")).size(), 1U);
  EXPECT_TRUE(Subtract(from, *policy::ParseCidr("10.0.0.0/8")).empty());
}

}  // namespace
}  // namespace soma::egress
