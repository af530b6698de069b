// SPDX-License-Identifier: Apache-2.0
#include "front/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "front/limit_watch.h"
#include "parse/json.h"
#include "walls/denied.h"

namespace soma::front {
namespace {

using testing::HasSubstr;
using testing::Not;

walls::Denied Refusal(const std::string& object) {
  return {.command = "sh",
          .tried = "open for writing",
          .object = object,
          .rule = "read \"/etc\" (dev:3)",
          .remedy = "--write"};
}

TEST(RunReport, SaysNothingWhenThereIsNothingToSay) {
  EXPECT_EQ(SummaryText({}), "");
  RunReport report;
  report.AddRefusal(Refusal("/usr/lib/x/__pycache__/y.pyc"));
  EXPECT_EQ(SummaryText(report), "");
}

TEST(RunReport, CountsEqualRefusalsAndBoundsTheList) {
  RunReport report{.level = "process", .profile = "dev"};
  for (int i = 0; i < 3; ++i) report.AddRefusal(Refusal("/etc/x"));
  EXPECT_THAT(SummaryText(report), HasSubstr("open for writing /etc/x (3 times) by sh"));
  for (int i = 0; i < 500; ++i) report.AddRefusal(Refusal("/etc/" + std::to_string(i)));
  EXPECT_EQ(report.refusals.size(), kRefusalsMax);
  EXPECT_THAT(SummaryText(report), HasSubstr("503 refusals"));
  EXPECT_THAT(SummaryText(report), HasSubstr("more: --report"));
}

TEST(RunReport, NamesTheLimitItsOriginAndItsMeans) {
  RunReport report{.limits_by_cgroup = true};
  report.limits.memory_bytes = {150 << 20, {"--memory", 0}};
  report.limits.pids = {60, {"p", 2}};
  report.hits = {.out_of_memory_kills = 1, .refused_forks = 7};
  EXPECT_THAT(
      SummaryText(report),
      HasSubstr(
          "killed: out of memory (memory = 150M, --memory, by cgroup; to allow more: --memory)"));
  EXPECT_THAT(SummaryText(report),
              HasSubstr("refused 7 times to start one more process (pids = 60, p:2, by cgroup"));
}

TEST(RunReport, WithoutACgroupMemoryIsAGuessFromTheLargestProcess) {
  RunReport report{.limits_by_cgroup = false, .exit_code = 1};
  report.limits.memory_bytes = {150 << 20, {"--memory", 0}};
  report.end.resident_bytes_max = 140 << 20;
  EXPECT_THAT(SummaryText(report), HasSubstr("probably out of memory"));
  report.exit_code = 0;
  EXPECT_THAT(SummaryText(report), Not(HasSubstr("memory")));
}

TEST(RunReport, JsonHoldsEverything) {
  RunReport report{.run_id = "r", .level = "process", .command = {"a\n\xff"}, .exit_code = 3};
  report.AddRefusal(Refusal("/etc/x"));
  report.hidden = {{"/home/u/.ssh", {"built-in dev", 12}}};
  const std::string text = ReportJson(report);
  const auto json = parse::ParseJson(text);
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->Find("exit_code")->AsInt(), 3);
  EXPECT_EQ(json->Find("refusals")->AsArray()->size(), 1U);
  EXPECT_EQ(*json->Find("hidden")->AsArray()->front().Find("rule")->AsString(), "built-in dev:12");
}

}  // namespace
}  // namespace soma::front
