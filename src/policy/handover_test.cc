// SPDX-License-Identifier: Apache-2.0
#include "policy/handover.h"

#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "policy/decide.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {
namespace {

TEST(Handover, TheOtherSideLoadsTheSamePolicy) {
  Handover before;
  before.context = {.home = "/home/u", .workspace = "/w"};
  before.sources = {
      {LayerKind::kUser, Format::kToml, "u", "[network]\nallow = [\"a.com\"]\n"},
      {LayerKind::kProject, Format::kJson, "p", "{\"filesystem\": {\"hide\": [\".env\"]}}"}};
  before.command_line.memory = "1G";
  before.command_line.write = {"/x"};
  const auto text = EncodeHandover(before);
  ASSERT_TRUE(text);
  const auto after = DecodeHandover(*text);
  ASSERT_TRUE(after) << after.error().message();
  const auto policy = Load(after->context, after->sources, after->command_line);
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->limits.memory_bytes->value, 1U << 30);
  EXPECT_EQ(VerdictOn(*policy, "/x"), PathVerdict::kWrite);
  EXPECT_EQ(VerdictOn(*policy, "/w/.env"), PathVerdict::kHide);
  EXPECT_TRUE(DecideConnect(*policy, {"a.com", std::nullopt, 80}).allowed);
  EXPECT_FALSE(after->command_line.isolation);
}

TEST(Handover, RefusesWhatWouldArriveChanged) {
  Handover handover;
  handover.command_line.read = {"/\xff"};
  EXPECT_FALSE(EncodeHandover(handover));
  const std::string unknown_kind =
      R"({"home":"/","workspace":"/w","sources":[{"kind":"x","format":"toml",)"
      R"("name":"n","text":""}],"command_line":{}})";
  for (const std::string& text : {std::string(), std::string("{}"), std::string(R"({"home": 1})"),
                                  std::string("[]"), unknown_kind}) {
    EXPECT_FALSE(DecodeHandover(text)) << text;
  }
}

}  // namespace
}  // namespace soma::policy
