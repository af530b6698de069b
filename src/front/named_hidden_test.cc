// SPDX-License-Identifier: Apache-2.0
#include "front/named_hidden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "policy/load.h"
#include "policy/model.h"

namespace soma::front {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NamedHiddenTest : public testing::Test {
 protected:
  NamedHiddenTest() {
    std::string place = testing::TempDir() + "/named-XXXXXX";
    EXPECT_NE(::mkdtemp(place.data()), nullptr);
    root_ = std::filesystem::canonical(place);
    std::filesystem::create_directories(root_ + "/home/.ssh");
    std::filesystem::create_directories(root_ + "/home/w");
    std::ofstream(root_ + "/home/.ssh/id") << "key";
    std::ofstream(root_ + "/home/w/.env") << "token";
    std::ofstream(root_ + "/home/w/open") << "text";
    auto policy =
        policy::Load({.home = root_ + "/home", .workspace = root_ + "/home/w"},
                     std::vector<policy::Source>{{policy::LayerKind::kUser, policy::Format::kToml,
                                                  "u", "[filesystem]\nhide = [\".env\"]\n"}},
                     {});
    EXPECT_TRUE(policy) << policy.error().message();
    policy_ = *std::move(policy);
  }
  ~NamedHiddenTest() override { std::filesystem::remove_all(root_); }

  std::vector<std::string> Named(const std::vector<std::string>& words) {
    std::vector<std::string> paths;
    for (const HiddenName& name : NamedHidden({.policy = policy_,
                                               .words = words,
                                               .directory = root_ + "/home/w",
                                               .home = root_ + "/home"})) {
      EXPECT_THAT(name.rule, HasSubstr("hide"));
      paths.push_back(name.path.substr(root_.size()));
    }
    return paths;
  }

  std::string root_;
  policy::Policy policy_;
};

TEST_F(NamedHiddenTest, FindsPathsInWordsAndScripts) {
  EXPECT_THAT(Named({"cat", root_ + "/home/.ssh/id"}), ElementsAre("/home/.ssh/id"));
  EXPECT_THAT(Named({"sh", "-c", "cat <~/.ssh/id; cat \"$HOME/.ssh/id\" .env"}),
              ElementsAre("/home/.ssh/id", "/home/w/.env"));
}

TEST_F(NamedHiddenTest, SaysNothingOfWhatIsOpenOrIsNotThere) {
  EXPECT_THAT(Named({"cat", "open", root_ + "/home/.ssh/none", "--key=", "x"}), IsEmpty());
}

}  // namespace
}  // namespace soma::front
