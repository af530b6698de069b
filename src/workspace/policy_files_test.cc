// SPDX-License-Identifier: Apache-2.0
#include "workspace/policy_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "policy/load.h"

namespace soma::workspace {
namespace {

using testing::HasSubstr;

class PolicyFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "policy_files.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directories(root_ + "/w");
    places_ = {.system = root_ + "/system.toml",
               .home = root_ + "/home",
               .config = "",
               .workspace = root_ + "/w",
               .named = {}};
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string ErrorOf() const {
    const auto sources = ReadPolicyFiles(places_);
    return sources ? "no error" : sources.error().message();
  }

  std::string root_;
  PolicyPlaces places_;
};

TEST_F(PolicyFiles, ReadsWhatExistsInTheOrderOfMerging) {
  EXPECT_TRUE(ReadPolicyFiles(places_)->empty());
  Write("system.toml", "s");
  Write("home/.config/soma/policy.toml", "u");
  Write("w/.soma/policy.json", "p");
  Write("extra.json", "c");
  places_.named = {root_ + "/extra.json"};
  const auto sources = ReadPolicyFiles(places_);
  ASSERT_TRUE(sources) << sources.error().message();
  ASSERT_EQ(sources->size(), 4U);
  EXPECT_EQ((*sources)[0].kind, policy::LayerKind::kSystem);
  EXPECT_EQ((*sources)[1].text, "u");
  EXPECT_EQ((*sources)[2].kind, policy::LayerKind::kProject);
  EXPECT_EQ((*sources)[2].format, policy::Format::kJson);
  EXPECT_EQ((*sources)[3].kind, policy::LayerKind::kCommandLine);
}

TEST_F(PolicyFiles, ANamedFileMustExist) {
  places_.named = {root_ + "/none.toml"};
  EXPECT_THAT(ErrorOf(), HasSubstr("none.toml does not exist"));
}

TEST_F(PolicyFiles, NeverWaitsAndNeverFollowsTheProject) {
  ASSERT_EQ(mkfifo((root_ + "/w/.soma.toml").c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf(), HasSubstr("is not a regular file"));
  std::filesystem::remove(root_ + "/w/.soma.toml");
  Write("elsewhere", "x");
  std::filesystem::create_symlink(root_ + "/elsewhere", root_ + "/w/.soma.toml");
  EXPECT_NE(ErrorOf(), "no error");
}

TEST_F(PolicyFiles, TwoProjectFilesAreOneTooMany) {
  Write("w/.soma.toml", "");
  Write("w/.soma/policy.toml", "");
  EXPECT_THAT(ErrorOf(), HasSubstr("more than one of"));
}

TEST_F(PolicyFiles, ReadsOneByteMoreThanTheBoundAtMost) {
  Write("system.toml", std::string(policy::kPolicyFileBytesMax * 2, '#'));
  const auto sources = ReadPolicyFiles(places_);
  ASSERT_TRUE(sources);
  EXPECT_EQ(sources->front().text.size(), policy::kPolicyFileBytesMax + 1);
  EXPECT_FALSE(policy::Load({.home = "/h", .workspace = "/w"}, *sources, {}));
}

}  // namespace
}  // namespace soma::workspace
