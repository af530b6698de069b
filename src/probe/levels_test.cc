// SPDX-License-Identifier: Apache-2.0
#include "probe/levels.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "probe/erofs_image.h"
#include "probe/report.h"

namespace soma::probe {
namespace {

Report AllBut(std::initializer_list<Feature> absent) {
  const std::set<Feature> lacking(absent);
  Report report;
  for (int i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    report.rows.push_back(
        {.feature = feature,
         .finding = lacking.contains(feature) ? Finding::kAbsent : Finding::kProven,
         .evidence = "evidence"});
  }
  return report;
}

const LevelFinding Level(const Report& report, std::string_view name) {
  for (const LevelFinding& level : FindLevels(report)) {
    if (level.name == name) return level;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(FindLevels, WithoutNamespacesTheSecondPathIsNamed) {
  const LevelFinding process = Level(AllBut({Feature::kUserNamespace}), "process");
  EXPECT_TRUE(process.possible);
  EXPECT_NE(process.reason.find("second path"), std::string::npos);
  EXPECT_FALSE(Level(AllBut({Feature::kUserNamespace, Feature::kLandlock}), "process").possible);
  EXPECT_FALSE(Level(AllBut({Feature::kUserNamespace}), "container").possible);
}

TEST(FindLevels, RegimesAreNamed) {
  const LevelFinding rootless =
      Level(AllBut({Feature::kCgroupPids, Feature::kIdMappedMount}), "container");
  EXPECT_TRUE(rootless.possible);
  EXPECT_NE(rootless.reason.find("rootless"), std::string::npos);
  EXPECT_NE(Level(AllBut({Feature::kCgroupPids}), "process").reason.find("setrlimit"),
            std::string::npos);
}

TEST(FindLevels, NoWallMeansNoLevel) {
  EXPECT_FALSE(Level(AllBut({Feature::kSeccomp}), "process").possible);
  EXPECT_FALSE(Level(AllBut({Feature::kKvm}), "microvm").possible);
  EXPECT_FALSE(Level(AllBut({Feature::kKvm}), "confidential").possible);
  EXPECT_FALSE(Level(AllBut({Feature::kSevSnp, Feature::kTdx}), "confidential").possible);
  EXPECT_TRUE(Level(AllBut({Feature::kSevSnp}), "confidential").possible);
}

TEST(ErofsImage, HasItsMagicNumber) {
  const std::string image = ErofsImage();
  ASSERT_EQ(image.size(), 4096U);
  EXPECT_EQ(image.substr(0x400, 4), "\xe2\xe1\xf5\xe0");  // EROFS_SUPER_MAGIC_V1
}

}  // namespace
}  // namespace soma::probe
