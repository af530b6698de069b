// SPDX-License-Identifier: Apache-2.0
#include "workspace/workspace_tar.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/child_process.h"

namespace soma::workspace {
namespace {

class WorkspaceTarTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "soma-tar-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    top_ = name;
    from_ = top_ + "/from";
    to_ = top_ + "/to";
    std::filesystem::create_directories(from_);
    std::filesystem::create_directories(to_);
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = from_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  Result<WorkspaceTar> Open(const TarLimits& limits = {}) {
    return WorkspaceTar::Open(
        from_, [](std::string_view path) { return path.ends_with("/secret"); }, limits);
  }

  // Unpacks with the tar of this machine, which is not ours.
  Status Unpack(WorkspaceTar& tar) {
    const std::string archive = top_ + "/archive.tar";
    std::ofstream file(archive, std::ios::binary);
    for (;;) {
      SOMA_ASSIGN(const Bytes piece, tar.Next());
      if (piece.empty()) break;
      file.write(reinterpret_cast<const char*>(piece.data()),
                 static_cast<std::streamsize>(piece.size()));
    }
    file.close();
    return sys::RunProgram({.path = "/bin/tar",
                            .arguments = {"tar", "-x", "-C", to_, "-f", archive},
                            .environment = {},
                            .descriptors = {}},
                           std::chrono::minutes(1));
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string top_;
  std::string from_;
  std::string to_;
};

TEST_F(WorkspaceTarTest, TarUnpacksWhatLiesThere) {
  const std::string long_name = std::string(90, 'd') + "/" + std::string(90, 'f');
  const std::string big(100'001, 'x');
  Write("a.txt", "hello");
  Write("empty", "");
  Write("sub/big", big);
  Write(long_name, "far");
  ASSERT_EQ(chmod((from_ + "/a.txt").c_str(), 0755), 0);
  auto tar = Open();
  ASSERT_TRUE(tar);
  ASSERT_TRUE(Unpack(*tar));
  EXPECT_EQ(Read(to_ + "/a.txt"), "hello");
  EXPECT_EQ(Read(to_ + "/empty"), "");
  EXPECT_EQ(Read(to_ + "/sub/big"), big);
  EXPECT_EQ(Read(to_ + "/" + long_name), "far");
  struct stat facts{};
  ASSERT_EQ(stat((to_ + "/a.txt").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0755U);
}

TEST_F(WorkspaceTarTest, LinksAreCopiedAsLinksAndNeverFollowed) {
  Write("a", "in");
  std::ofstream(top_ + "/outside") << "OUTSIDE";
  const std::string target = "../" + std::string(120, 'x');
  ASSERT_EQ(symlink("../outside", (from_ + "/file").c_str()), 0);
  ASSERT_EQ(symlink(top_.c_str(), (from_ + "/directory").c_str()), 0);
  ASSERT_EQ(symlink(target.c_str(), (from_ + "/long").c_str()), 0);
  auto tar = Open();
  ASSERT_TRUE(tar);
  ASSERT_TRUE(Unpack(*tar));
  EXPECT_TRUE(std::filesystem::is_symlink(to_ + "/file"));
  EXPECT_TRUE(std::filesystem::is_symlink(to_ + "/directory"));
  EXPECT_EQ(std::filesystem::read_symlink(to_ + "/long"), target);
  EXPECT_EQ(Read(top_ + "/archive.tar").find("OUTSIDE"), std::string::npos);
}

TEST_F(WorkspaceTarTest, HiddenAndSpecialFilesStayOut) {
  Write("secret", "TOP");
  Write("sub/secret/key", "TOP");
  Write("sub/kept", "kept");
  ASSERT_EQ(mkfifo((from_ + "/pipe").c_str(), 0600), 0);
  auto tar = Open();
  ASSERT_TRUE(tar);
  ASSERT_TRUE(Unpack(*tar));
  EXPECT_EQ(Read(to_ + "/sub/kept"), "kept");
  EXPECT_FALSE(std::filesystem::exists(to_ + "/pipe"));
  EXPECT_EQ(Read(top_ + "/archive.tar").find("TOP"), std::string::npos);
  EXPECT_EQ(tar->hidden(), 2U);
  EXPECT_EQ(tar->other(), 1U);
}

TEST_F(WorkspaceTarTest, LimitsEndIt) {
  Write("a", "12345");
  Write("b/c/d", "12345");
  for (const TarLimits& limits :
       {TarLimits{.bytes_max = 9}, TarLimits{.entries_max = 3}, TarLimits{.depth_max = 2}}) {
    auto tar = Open(limits);
    ASSERT_TRUE(tar);
    const Status status = Unpack(*tar);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), Errc::kOutOfRange);
  }
  auto tar = Open({.bytes_max = 10, .entries_max = 4, .depth_max = 3});
  ASSERT_TRUE(tar);
  EXPECT_TRUE(Unpack(*tar));
}

}  // namespace
}  // namespace soma::workspace
