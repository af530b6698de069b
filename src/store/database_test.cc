// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"

namespace soma::store {
namespace {

using namespace std::string_literals;

constexpr std::array<std::string_view, 1> kFirst = {"CREATE TABLE t (a INTEGER, b TEXT, c BLOB)"};
constexpr std::array<std::string_view, 2> kSecond = {kFirst[0], "ALTER TABLE t ADD COLUMN d TEXT"};

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "soma-store-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = pattern;
    path = root + "/x.db";
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  std::string root;
  std::string path;
};

TEST_F(DatabaseTest, KeepsValuesOfEveryType) {
  auto database = Database::Open(path, kFirst);
  ASSERT_TRUE(database) << database.error().message();
  auto insert = database->Prepare("INSERT INTO t VALUES (?, ?, ?)");
  ASSERT_TRUE(insert);
  const std::string hostile = "'; DROP TABLE t; --\0x"s;
  const std::array<std::uint8_t, 3> blob = {0, 255, 7};
  ASSERT_TRUE(insert->Bind(1, -5).Bind(2, hostile).BindBlob(3, blob).Run());
  auto query = database->Prepare("SELECT a, b, c, NULL FROM t");
  ASSERT_TRUE(query->Step().value_or(false));
  EXPECT_EQ(query->Integer(0), -5);
  EXPECT_EQ(query->Text(1), hostile);
  EXPECT_EQ(query->Blob(2), Bytes(blob.begin(), blob.end()));
  EXPECT_TRUE(query->IsNull(3));
  EXPECT_FALSE(query->Step().value_or(true));
}

TEST_F(DatabaseTest, IsReadableByItsOwnerOnly) {
  ASSERT_TRUE(Database::Open(path, kFirst));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(DatabaseTest, MigratesForwardAndRefusesANewerFile) {
  ASSERT_TRUE(Database::Open(path, kFirst));
  {
    auto newer = Database::Open(path, kSecond);
    ASSERT_TRUE(newer);
    EXPECT_TRUE(newer->Prepare("SELECT d FROM t"));
  }
  const auto older = Database::Open(path, kFirst);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code(), Errc::kFailedPrecondition);
}

TEST_F(DatabaseTest, AFailedMigrationLeavesTheFileAsItWas) {
  constexpr std::array<std::string_view, 2> kBroken = {kFirst[0], "CREATE TABLE u (x); NONSENSE"};
  ASSERT_TRUE(Database::Open(path, kFirst));
  EXPECT_FALSE(Database::Open(path, kBroken));
  auto database = Database::Open(path, kFirst);
  ASSERT_TRUE(database);
  EXPECT_FALSE(database->Prepare("SELECT x FROM u"));
}

TEST_F(DatabaseTest, ATransactionWithoutCommitRollsBack) {
  auto database = Database::Open(path, kFirst);
  {
    auto transaction = Transaction::Begin(*database);
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(database->Execute("INSERT INTO t VALUES (1, '', '')"));
  }
  auto query = database->Prepare("SELECT count(*) FROM t");
  ASSERT_TRUE(query->Step().value_or(false));
  EXPECT_EQ(query->Integer(0), 0);
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsDataLoss) {
  std::ofstream(path) << std::string(4096, 'x');
  const auto database = Database::Open(path, kFirst);
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code(), Errc::kDataLoss);
}

}  // namespace
}  // namespace soma::store
