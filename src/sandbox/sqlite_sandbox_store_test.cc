// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sqlite_sandbox_store.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

#include "sandbox/record.h"

namespace soma::sandbox {
namespace {

class SqliteSandboxStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "soma-sandboxes-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string Path() const { return directory + "/sandboxes.db"; }

  void SaveOne() const {
    auto store = SqliteSandboxStore::Open(Path());
    ASSERT_TRUE(store) << store.error().message();
    SandboxRecord record;
    record.id = "i1";
    EXPECT_TRUE(store->Save(record));
  }
  std::size_t Loaded() const {
    auto store = SqliteSandboxStore::Open(Path());
    EXPECT_TRUE(store) << store.error().message();
    if (!store) return SIZE_MAX;
    const auto all = store->LoadAll();
    EXPECT_TRUE(all) << all.error().message();
    return all ? all->size() : SIZE_MAX;
  }

  std::string directory;
};

TEST_F(SqliteSandboxStoreTest, KeepsWhatWasSaved) {
  SaveOne();
  EXPECT_EQ(Loaded(), 1U);
}

TEST_F(SqliteSandboxStoreTest, BeginsAnewWhereAPowerCutDamagedIt) {
  SaveOne();
  const auto size = std::filesystem::file_size(Path());
  for (const std::streamoff at : {std::streamoff{0}, std::streamoff{4096}}) {
    SaveOne();
    {
      std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(at);
      file << std::string(size - static_cast<std::size_t>(at), 'x');
    }
    EXPECT_EQ(Loaded(), 0U) << at;
  }
}

}  // namespace
}  // namespace soma::sandbox
