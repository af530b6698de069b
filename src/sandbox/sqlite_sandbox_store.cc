// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sqlite_sandbox_store.h"

#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sandbox/record.h"
#include "store/database.h"

namespace soma::sandbox {
namespace {

constexpr std::array<std::string_view, 1> kMigrations = {
    "CREATE TABLE sandboxes (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID",
};

}  // namespace

Result<SqliteSandboxStore> SqliteSandboxStore::OpenAsIs(const std::string& path) {
  SOMA_ASSIGN(auto database, store::Database::Open(path, kMigrations));
  SOMA_TRY(database.Execute("PRAGMA synchronous = OFF"));
  {
    SOMA_ASSIGN(auto check, database.Prepare("PRAGMA quick_check(1)"));
    SOMA_ASSIGN(const bool row, check.Step());
    if (!row || check.Text(0) != "ok") return Fail(Errc::kDataLoss, StrCat(path, " is damaged"));
  }
  return SqliteSandboxStore(std::move(database));
}

Result<SqliteSandboxStore> SqliteSandboxStore::Open(const std::string& path) {
  auto store = OpenAsIs(path);
  if (store || store.error().code() != Errc::kDataLoss) return store;
  for (const char* part : {"", "-wal", "-shm"}) (void)::unlink(StrCat(path, part).c_str());
  return OpenAsIs(path);
}

Status SqliteSandboxStore::Save(const SandboxRecord& record) {
  SOMA_ASSIGN(auto statement,
              database_.Prepare("INSERT OR REPLACE INTO sandboxes (id, record) VALUES (?, ?)"));
  const std::string text = EncodeRecord(record);
  return statement.Bind(1, record.id).Bind(2, text).Run();
}

Status SqliteSandboxStore::Remove(const std::string& id) {
  SOMA_ASSIGN(auto statement, database_.Prepare("DELETE FROM sandboxes WHERE id = ?"));
  return statement.Bind(1, id).Run();
}

Result<std::vector<SandboxRecord>> SqliteSandboxStore::LoadAll() {
  SOMA_ASSIGN(auto statement, database_.Prepare("SELECT record FROM sandboxes ORDER BY id"));
  std::vector<SandboxRecord> all;
  for (;;) {
    SOMA_ASSIGN(const bool row, statement.Step());
    if (!row) return all;
    SOMA_ASSIGN(auto record, DecodeRecord(statement.Text(0)));
    all.push_back(std::move(record));
  }
}

}  // namespace soma::sandbox
