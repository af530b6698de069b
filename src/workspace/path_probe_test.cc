// SPDX-License-Identifier: Apache-2.0
#include "workspace/path_probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "policy/load.h"
#include "policy/path_facts.h"

namespace soma::workspace {
namespace {

using policy::PathKind;
using testing::HasSubstr;

class PathProbe : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "path_probe.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::string ErrorOf(const std::string& path, const std::string& home = "/nonexistent") const {
    const auto result = CheckWorkspace(path, home);
    return result ? "no error" : result.error().message();
  }

  std::string root_;
};

TEST_F(PathProbe, AcceptsADirectoryAndGivesItsRealPath) {
  std::filesystem::create_directories(Path("real/project"));
  std::filesystem::create_symlink("real", Path("alias"));
  EXPECT_EQ(CheckWorkspace(Path("real/project/"), "").value_or(""), Path("real/project"));
  EXPECT_EQ(CheckWorkspace(Path("alias/project"), "").value_or(""), Path("real/project"));
}

TEST_F(PathProbe, RefusesWhatIsNoWorkspace) {
  std::filesystem::create_directories(Path("dir"));
  std::filesystem::create_symlink("dir", Path("link"));
  std::ofstream(Path("file")) << "x";
  EXPECT_THAT(ErrorOf(Path("link")), HasSubstr("is a symbolic link to dir"));
  EXPECT_THAT(ErrorOf(Path("link/")), HasSubstr("is a symbolic link"));
  EXPECT_THAT(ErrorOf(Path("file")), HasSubstr("is not a directory"));
  EXPECT_THAT(ErrorOf(Path("missing")), HasSubstr("No such file"));
  EXPECT_THAT(ErrorOf("/"), HasSubstr("root of the file system"));
  EXPECT_THAT(ErrorOf("//"), HasSubstr("root of the file system"));
  EXPECT_THAT(ErrorOf("/usr/lib"), HasSubstr("belongs to the system"));
  EXPECT_THAT(ErrorOf("/tmp"), HasSubstr("is shared by everything"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("no usable path"));
}

TEST_F(PathProbe, RefusesTheHomeDirectoryAndItsParents) {
  std::filesystem::create_directories(Path("home/u/project"));
  EXPECT_THAT(ErrorOf(Path("home/u"), Path("home/u")), HasSubstr("is the home directory"));
  EXPECT_THAT(ErrorOf(Path("home"), Path("home/u")),
              HasSubstr("is the home directory or holds it"));
  EXPECT_EQ(ErrorOf(Path("home/u/project"), Path("home/u")), "no error");
}

TEST_F(PathProbe, RefusesNamesThatNoTerminalCanShow) {
  for (const std::string& name :
       {std::string("a\nb"), std::string("a\x1b[0m"), std::string("\xff")}) {
    std::filesystem::create_directories(Path(name));
    std::filesystem::create_directories(Path(name + "/inner"));
    EXPECT_NE(ErrorOf(Path(name)), "no error");
    EXPECT_EQ(ErrorOf(Path(name)).find('\n'), std::string::npos);
    // Also when it is only reached by way of the current directory.
    ASSERT_EQ(chdir(Path(name).c_str()), 0);
    EXPECT_NE(ErrorOf("inner"), "no error");
    ASSERT_EQ(chdir("/"), 0);
  }
}

TEST_F(PathProbe, LooksThroughLinks) {
  std::filesystem::create_directories(Path("dir"));
  std::ofstream(Path("dir/file")) << "x";
  std::filesystem::create_symlink("dir", Path("link"));
  const policy::PathFact link = LookAt(Path("link"));
  EXPECT_EQ(link.real, Path("dir"));
  EXPECT_EQ(link.kind, PathKind::kDirectory);
  EXPECT_EQ(link.link_text, "dir");
  const policy::PathFact file = LookAt(Path("link/file"));
  EXPECT_EQ(file.real, Path("dir/file"));
  EXPECT_EQ(file.kind, PathKind::kFile);
  EXPECT_EQ(file.link_text, "");
  EXPECT_EQ(LookAt(Path("none")).kind, PathKind::kMissing);
}

TEST_F(PathProbe, ExpandsGlobsOfHideRules) {
  std::filesystem::create_directories(Path("w/a/b"));
  for (const char* name : {"w/.env", "w/a/.env", "w/a/b/.env", "w/a/b/env"})
    std::ofstream(Path(name)) << "x";
  std::filesystem::create_symlink("/", Path("w/loop"));
  const std::vector<policy::Source> sources = {
      {policy::LayerKind::kUser, policy::Format::kToml, "u",
       "[filesystem]\ndefault = \"read\"\nhide = [\"**/.env\"]\n"}};
  const auto policy = policy::Load({.home = "/nonexistent", .workspace = Path("w")}, sources, {});
  ASSERT_TRUE(policy);
  const auto facts = GatherPathFacts(*policy);
  ASSERT_TRUE(facts);
  std::vector<std::string> found;
  for (const policy::PathFact& fact : facts->rules) {
    if (fact.path.ends_with(".env")) found.push_back(fact.path);
  }
  EXPECT_EQ(found, (std::vector{Path("w/.env"), Path("w/a/.env"), Path("w/a/b/.env")}));
  EXPECT_EQ(facts->workspace.real, Path("w"));
  EXPECT_FALSE(facts->root.empty());
}

}  // namespace
}  // namespace soma::workspace
