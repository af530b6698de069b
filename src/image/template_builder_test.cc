// SPDX-License-Identifier: Apache-2.0
// With a recipe of a few lines in place of the real one: what the store looks like before, after
// and between.
#include "image/template_builder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace soma::image {
namespace {

namespace fs = std::filesystem;

class StillClock : public Clock {
 public:
  WallTime Now() override { return WallTime(std::chrono::seconds(1'790'000'000)); }
  MonotonicTime MonotonicNow() override { return {}; }
};

class TemplateBuilder : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "template-builder-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    WriteRecipe("one", "echo content > $2/root.erofs; echo bash=5 > $2/packages");
  }
  void TearDown() override { fs::remove_all(root_); }

  // A recipe with that key; `build` runs in the shell with $2 as its directory and counts its
  // calls.
  void WriteRecipe(const std::string& key, const std::string& build) {
    std::ofstream(recipe()) << "#!/bin/sh\nset -e\nif [ $1 = key ]; then echo " << key
                            << "; exit; fi\necho x >> " << root_ << "/builds\n"
                            << build << "\n";
    chmod(recipe().c_str(), 0755);
  }
  Result<Built> Build(WhenCurrent when_current = WhenCurrent::kReuse) {
    return BuildTemplate(
        {.name = "base", .templates = store(), .recipe = recipe(), .when_current = when_current},
        clock_);
  }
  std::string recipe() const { return root_ + "/recipe"; }
  std::string store() const { return root_ + "/state/templates"; }
  std::uintmax_t builds() const {
    return fs::exists(root_ + "/builds") ? fs::file_size(root_ + "/builds") / 2 : 0;
  }

  std::string root_;
  StillClock clock_;
};

TEST_F(TemplateBuilder, MakesATemplateThatItsNameFinds) {
  const auto built = Build();
  ASSERT_TRUE(built) << built.error().message();
  EXPECT_FALSE(built->from_cache);
  EXPECT_EQ(built->manifest.erofs_bytes, 8U);
  EXPECT_EQ(built->manifest.packages, std::vector<std::string>{"bash=5"});
  EXPECT_EQ(fs::read_symlink(store() + "/base"), built->manifest.id);
  const auto found = FindTemplate(store(), "base");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, built->manifest);
  EXPECT_FALSE(fs::exists(store() + "/.build"));
}

TEST_F(TemplateBuilder, ReusesWhatHasTheSameKey) {
  ASSERT_TRUE(Build());
  const auto again = Build();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->from_cache);
  EXPECT_EQ(builds(), 1U);
  ASSERT_TRUE(Build(WhenCurrent::kRebuild));
  EXPECT_EQ(builds(), 2U);
}

TEST_F(TemplateBuilder, KeepsTheOldOneBesideANewOne) {
  const auto first = Build();
  WriteRecipe("two", "echo other content > $2/root.erofs; : > $2/packages");
  const auto second = Build();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->manifest.id, second->manifest.id);
  EXPECT_EQ(fs::read_symlink(store() + "/base"), second->manifest.id);
  const auto all = ListTemplates(store());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2U);
}

TEST_F(TemplateBuilder, AFailedBuildChangesNothing) {
  const auto good = Build();
  ASSERT_TRUE(good);
  WriteRecipe("two", "echo half > $2/root.erofs; exit 3");
  const auto failed = Build();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("exit status 3"), std::string::npos)
      << failed.error().message();
  EXPECT_EQ(fs::read_symlink(store() + "/base"), good->manifest.id);
  EXPECT_FALSE(fs::exists(store() + "/.build"));
}

TEST_F(TemplateBuilder, RemovesWhatAKilledBuildLeft) {
  fs::create_directories(store() + "/.build/work/root");
  std::ofstream(store() + "/.build/root.erofs") << "half";
  ASSERT_TRUE(Build());
  EXPECT_FALSE(fs::exists(store() + "/.build"));
}

TEST_F(TemplateBuilder, RefusesNamesThatLeaveTheStore) {
  EXPECT_FALSE(BuildTemplate({.name = "../x", .templates = store(), .recipe = recipe()}, clock_));
  EXPECT_FALSE(FindTemplate(store(), "../base"));
}

TEST_F(TemplateBuilder, AnAbsentStoreIsEmpty) {
  const auto all = ListTemplates(store());
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->empty());
}

}  // namespace
}  // namespace soma::image
