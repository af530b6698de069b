// SPDX-License-Identifier: Apache-2.0
// Database: a thin wrapper around SQLite (3.40 in Debian 12). Write-ahead log, foreign keys on,
// five seconds of patience with other processes' locks, every error a Result.
//
// One Database belongs to one thread at a time; calls block on the disk, so not on an event loop.
// Statements must not outlive their Database. SQL is ours; values only ever get in by Bind.
#ifndef SOMA_STORE_DATABASE_H_
#define SOMA_STORE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace soma::store {

// A prepared statement. Binding counts from 1 and columns from 0, as in SQLite.
class Statement {
 public:
  Statement& Bind(int index, std::int64_t value);
  Statement& Bind(int index, std::string_view text);
  Statement& BindBlob(int index, ByteView bytes);
  Statement& BindNull(int index);

  // True: a row is there. False: done. A failed Bind shows here.
  Result<bool> Step();
  // Runs a statement that gives no rows.
  Status Run();
  // Makes it ready to run again; bindings are cleared.
  void Reset();

  std::int64_t Integer(int column) const;
  std::string Text(int column) const;
  Bytes Blob(int column) const;
  bool IsNull(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  void Note(int code);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

class Database {
 public:
  // Opens or makes the file (mode 0600, in a directory that exists) and brings it to the newest
  // schema: `migrations[i]` leads from version i to i + 1, each in a transaction with its number.
  // kFailedPrecondition when the file is of a newer program; kDataLoss when it is no database.
  static Result<Database> Open(const std::string& path,
                               std::span<const std::string_view> migrations);

  Result<Statement> Prepare(std::string_view sql);
  // Statements without values: pragmas, schema.
  Status Execute(const std::string& sql);
  // Rows changed by the last statement.
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  Status Migrate(std::span<const std::string_view> migrations);
  std::unique_ptr<sqlite3, Close> database_;
};

// BEGIN IMMEDIATE at Begin; rolls back when it goes without a Commit.
class Transaction {
 public:
  static Result<Transaction> Begin(Database& database);
  ~Transaction();
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  // Durable when it returns (synchronous = FULL).
  Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace soma::store

#endif  // SOMA_STORE_DATABASE_H_
