// SPDX-License-Identifier: Apache-2.0
#include "plan/level_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "policy/level.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::plan {
namespace {

using policy::Level;
using testing::HasSubstr;

policy::Policy With(const std::string& isolation) {
  const std::vector<policy::Source> sources = {
      {policy::LayerKind::kUser, policy::Format::kToml, "u", "[isolation]\n" + isolation}};
  auto policy = policy::Load({.home = "/h", .workspace = "/w"}, sources, {});
  EXPECT_TRUE(policy) << policy.error().message();
  return *std::move(policy);
}

const MachineLevels kNoKvm{.gvisor = {false, "no runsc"},
                           .microvm = {false, "ring-0 probe: 41000 ns a round, 900 expected"},
                           .confidential = {false, "no SEV"}};
const MachineLevels kAll{.gvisor = {true, ""}, .microvm = {true, ""}, .confidential = {true, ""}};

std::string ErrorOf(const policy::Policy& policy, const MachineLevels& machine) {
  const auto choice = ChooseRunLevel(policy, machine);
  return choice ? "chose " + std::string(LevelName(choice->level)) : choice.error().message();
}

TEST(ChooseRunLevel, DefaultIsProcess) {
  EXPECT_EQ(ErrorOf(With(""), kAll), "chose process");
  EXPECT_EQ(ErrorOf(With("level = \"auto\""), kAll), "chose process");
}

TEST(ChooseRunLevel, AMinimumRaisesToTheWeakestProvenLevel) {
  EXPECT_EQ(ErrorOf(With("minimum = \"container\""), kNoKvm), "chose container");
  EXPECT_EQ(ErrorOf(With("minimum = \"gvisor\""), kAll), "chose gvisor");
  MachineLevels only_kvm = kNoKvm;
  only_kvm.microvm.proven = true;
  EXPECT_EQ(ErrorOf(With("minimum = \"gvisor\""), only_kvm), "chose microvm");
}

TEST(ChooseRunLevel, AMicrovmMinimumWithoutKvmRefusesWithFigureAndWayOut) {
  const std::string message = ErrorOf(With("minimum = \"microvm\""), kNoKvm);
  EXPECT_THAT(message, HasSubstr("41000 ns"));
  EXPECT_THAT(message, HasSubstr("u:2"));
  EXPECT_THAT(message, HasSubstr("--isolation emulated"));
  EXPECT_THAT(message, HasSubstr("not a hardware boundary"));
}

TEST(ChooseRunLevel, EmulatedIsOnlyEverNamed) {
  EXPECT_EQ(ErrorOf(With("level = \"emulated\""), kNoKvm), "chose emulated");
  EXPECT_THAT(ErrorOf(With("level = \"auto\"\nminimum = \"microvm\""), kNoKvm),
              HasSubstr("does not prove"));
  policy::Policy both = With("minimum = \"microvm\"");
  both.isolation.level = {Level::kEmulated, {"--isolation", 0}};
  EXPECT_THAT(ErrorOf(both, kAll), HasSubstr("below the minimum"));
}

TEST(ChooseRunLevel, NoneIsOnlyEverNamedAndStaysBelowEveryMinimum) {
  policy::Policy none = With("");
  none.isolation.level = {Level::kNone, {"--isolation", 0}};
  EXPECT_EQ(ErrorOf(none, kAll), "chose none");
  none = With("minimum = \"process\"");
  none.isolation.level = {Level::kNone, {"--isolation", 0}};
  EXPECT_THAT(ErrorOf(none, kAll), HasSubstr("level \"none\" (--isolation) is below the minimum"));
}

TEST(ChooseRunLevel, ANamedLevelMustBeProven) {
  EXPECT_THAT(ErrorOf(With("level = \"microvm\""), kNoKvm), HasSubstr("does not prove"));
  EXPECT_EQ(ErrorOf(With("level = \"microvm\""), kAll), "chose microvm");
}

}  // namespace
}  // namespace soma::plan
