// SPDX-License-Identifier: Apache-2.0
#include "store/database.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::store {

namespace {

constexpr int kBusyTimeoutMilliseconds = 5000;

Errc CodeFor(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Errc::kUnavailable;
    case SQLITE_CONSTRAINT:
      return Errc::kAlreadyExists;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::kDataLoss;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return Errc::kPermissionDenied;
    case SQLITE_RANGE:
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
      return Errc::kInternal;
    default:
      return Errc::kUnavailable;
  }
}

std::unexpected<Error> FailSql(sqlite3* database, int code, std::string_view doing) {
  if ((code & 0xff) == SQLITE_FULL) return std::unexpected(Error::FromErrno(ENOSPC, doing));
  const char* text = database != nullptr ? ::sqlite3_errmsg(database) : ::sqlite3_errstr(code);
  return Fail(CodeFor(code), StrCat(doing, ": ", std::string_view(text)));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  (void)::sqlite3_finalize(statement);
}

void Statement::Note(int code) {
  if (code != SQLITE_OK) bind_error_ = code;
}

Statement& Statement::Bind(int index, std::int64_t value) {
  Note(::sqlite3_bind_int64(statement_.get(), index, value));
  return *this;
}

Statement& Statement::Bind(int index, std::string_view text) {
  Note(::sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT,
                             SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBlob(int index, ByteView bytes) {
  Note(
      ::sqlite3_bind_blob64(statement_.get(), index, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::BindNull(int index) {
  Note(::sqlite3_bind_null(statement_.get(), index));
  return *this;
}

Result<bool> Statement::Step() {
  sqlite3* database = ::sqlite3_db_handle(statement_.get());
  if (bind_error_ != 0) return FailSql(database, bind_error_, "binding a value");
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return FailSql(database, code, "running a statement");
}

Status Statement::Run() {
  SOMA_ASSIGN(const bool row, Step());
  if (row) return Fail(Errc::kInternal, "a statement without rows gave one");
  return {};
}

void Statement::Reset() {
  (void)::sqlite3_reset(statement_.get());
  (void)::sqlite3_clear_bindings(statement_.get());
  bind_error_ = 0;
}

std::int64_t Statement::Integer(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::Text(int column) const {
  const auto* text = ::sqlite3_column_text(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
}

Bytes Statement::Blob(int column) const {
  const auto* data =
      static_cast<const std::uint8_t*>(::sqlite3_column_blob(statement_.get(), column));
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? Bytes() : Bytes(data, data + size);
}

bool Statement::IsNull(int column) const {
  return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

void Database::Close::operator()(sqlite3* database) const { (void)::sqlite3_close_v2(database); }

Result<Database> Database::Open(const std::string& path,
                                std::span<const std::string_view> migrations) {
  // SQLite would make the file with the process's umask; what is in it is nobody else's business.
  {
    SOMA_ASSIGN(const Fd made, sys::OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  }
  sqlite3* raw = nullptr;
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOFOLLOW;
  const int code = ::sqlite3_open_v2(path.c_str(), &raw, kFlags, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return FailSql(raw, code, StrCat("opening ", path));
  (void)::sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  SOMA_TRY_WHILE(database.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                  "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"),
                 StrCat("opening ", path));
  SOMA_TRY_WHILE(database.Migrate(migrations), StrCat("opening ", path));
  return database;
}

Status Database::Migrate(std::span<const std::string_view> migrations) {
  const auto version = [&]() -> Result<std::int64_t> {
    SOMA_ASSIGN(Statement query, Prepare("PRAGMA user_version"));
    SOMA_ASSIGN(const bool row, query.Step());
    return row ? query.Integer(0) : 0;
  };
  SOMA_ASSIGN(std::int64_t now, version());
  const auto newest = static_cast<std::int64_t>(migrations.size());
  if (now == newest) return {};
  // Under the write lock the version is read again: another process may have been faster.
  SOMA_ASSIGN(Transaction transaction, Transaction::Begin(*this));
  SOMA_ASSIGN(now, version());
  if (now > newest || now < 0) {
    return Fail(Errc::kFailedPrecondition,
                StrCat("its schema has version ", now, ", this program knows ", newest));
  }
  for (; now < newest; ++now) {
    SOMA_TRY_WHILE(Execute(std::string(migrations[static_cast<std::size_t>(now)])),
                   StrCat("migration ", now + 1));
  }
  SOMA_TRY(Execute(StrCat("PRAGMA user_version = ", newest)));
  return transaction.Commit();
}

Result<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = ::sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        0, &raw, nullptr);
  if (code != SQLITE_OK) return FailSql(database_.get(), code, "preparing a statement");
  return Statement(raw);
}

Status Database::Execute(const std::string& sql) {
  const int code = ::sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return FailSql(database_.get(), code, "running SQL");
  return {};
}

std::int64_t Database::changes() const { return ::sqlite3_changes64(database_.get()); }

Result<Transaction> Transaction::Begin(Database& database) {
  SOMA_TRY(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->Execute("ROLLBACK");
}

Status Transaction::Commit() {
  SOMA_TRY(database_->Execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace soma::store
