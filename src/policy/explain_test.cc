// SPDX-License-Identifier: Apache-2.0
#include "policy/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "parse/json.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {
namespace {

using testing::HasSubstr;

Policy Example() {
  const std::vector<Source> sources = {
      {LayerKind::kUser, Format::kToml, "u",
       "[network]\nallow = [\"a.com:443\"]\n[limits]\ncpu = 1.5\ntime = \"90s\"\n"},
      {LayerKind::kProject, Format::kToml, "p",
       "[filesystem]\nhide = [\".env\"]\nwrite = [\"/etc\"]\n"}};
  auto policy = Load({.home = "/home/u", .workspace = "/w"}, sources, {});
  EXPECT_TRUE(policy) << policy.error().message();
  return *std::move(policy);
}

TEST(ExplainPolicy, NamesEveryRuleWithItsOrigin) {
  const std::string text = Join(ExplainPolicy(Example()), "\n");
  for (const char* part :
       {"profile: dev", "workspace: /w", "write /w  (the workspace)", "allow a.com:443  (u:2)",
        "files, narrowed further:", "hide /w/.env  (p:2)", "processors 1.50  (u:4)", "time 1m30s",
        "note: p:3: write \"/etc\" has no effect", "everything else: deny"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ExplainPolicy, SaysWhenNothingGetsOut) {
  const auto policy = Load({.home = "/home/u", .workspace = "/w"}, {}, {});
  EXPECT_THAT(Join(ExplainPolicy(*policy), "\n"), HasSubstr("network: nothing gets out"));
}

TEST(PolicyJson, IsOneObjectWithAllSections) {
  const auto json = parse::ParseJson(PolicyJson(Example()));
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(*json->Find("profile")->AsString(), "dev");
  EXPECT_EQ(json->Find("filesystem")->AsArray()->size(), 2U);
  EXPECT_EQ(json->Find("limits")->Find("time_ms")->AsInt(), 90'000);
}

}  // namespace
}  // namespace soma::policy
