// SPDX-License-Identifier: Apache-2.0
#include "tenant/keyring.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "crypto/random.h"
#include "store/database.h"

namespace soma::tenant {

namespace {

constexpr std::string_view kPrefix = "e2b_";
constexpr std::size_t kSecretBytes = 20;
constexpr std::size_t kKeyBytes = kPrefix.size() + 2 * kSecretBytes;
constexpr std::size_t kIdBytes = 4;
constexpr std::size_t kHintBytes = 8;
constexpr std::size_t kLabelBytesMax = 64;

constexpr std::array<std::string_view, 1> kMigrations = {R"sql(
  CREATE TABLE tenants (name TEXT PRIMARY KEY, created INTEGER NOT NULL) STRICT;
  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL REFERENCES tenants (name),
    hash BLOB NOT NULL UNIQUE,
    label TEXT NOT NULL,
    hint TEXT NOT NULL,
    created INTEGER NOT NULL,
    revoked INTEGER
  ) STRICT;
)sql"};

bool HasKeyShape(std::string_view key) {
  return key.size() == kKeyBytes && key.starts_with(kPrefix) &&
         key.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

std::unexpected<Error> Unauthenticated() {
  return Fail(Errc::kUnauthenticated, "the API key is not valid");
}

std::int64_t Stored(WallTime time) { return time.time_since_epoch().count(); }
WallTime Loaded(std::int64_t stored) { return WallTime(std::chrono::microseconds(stored)); }

}  // namespace

bool IsTenantName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name.front() != '-' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

Result<Keyring> Keyring::Open(const std::string& path, audit::Recorder& recorder, Clock& clock,
                              Random& random) {
  SOMA_ASSIGN(store::Database database, store::Database::Open(path, kMigrations));
  return Keyring(std::move(database), recorder, clock, random);
}

Result<TenantId> Keyring::Authenticate(std::string_view key) {
  if (!HasKeyShape(key)) return Unauthenticated();
  const crypto::Digest hash = crypto::Sha256(key);
  SOMA_ASSIGN(
      store::Statement query,
      database_.Prepare("SELECT tenant, hash FROM keys WHERE hash = ? AND revoked IS NULL"));
  query.BindBlob(1, hash);
  SOMA_ASSIGN(const bool found, query.Step());
  if (!found || !crypto::EqualInConstantTime(query.Blob(1), hash)) return Unauthenticated();
  return TenantId{query.Text(0)};
}

Status Keyring::RecordChange(std::string_view what, const std::string& key_id,
                             const TenantId& tenant) {
  audit::Event event;
  event.kind = audit::EventKind::kKeyChange;
  event.tenant = tenant.name;
  event.subject = what;
  event.object = key_id;
  return recorder_->Record(event, audit::Durability::kBeforeEffect);
}

Status Keyring::InsertTenant(const TenantId& tenant, WallTime now) {
  SOMA_ASSIGN(store::Statement insert,
              database_.Prepare("INSERT INTO tenants VALUES (?, ?) ON CONFLICT DO NOTHING"));
  SOMA_TRY(insert.Bind(1, tenant.name).Bind(2, Stored(now)).Run());
  if (database_.changes() == 0) return {};
  return RecordChange("tenant created", "", tenant);
}

Status Keyring::InsertKey(const NewKey& made) {
  SOMA_ASSIGN(store::Statement insert,
              database_.Prepare("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?, NULL)"));
  const crypto::Digest hash = crypto::Sha256(made.key);
  return insert.Bind(1, made.info.id)
      .Bind(2, made.info.tenant.name)
      .BindBlob(3, hash)
      .Bind(4, made.info.label)
      .Bind(5, made.info.hint)
      .Bind(6, Stored(made.info.created))
      .Run();
}

Result<NewKey> Keyring::CreateKey(const TenantId& tenant, const std::string& label) {
  if (!IsTenantName(tenant.name)) {
    return Fail(Errc::kInvalidArgument,
                "a tenant's name is 1 to 64 of a-z, 0-9 and -, and does not begin with -");
  }
  if (label.size() > kLabelBytesMax || !IsValidUtf8(label)) {
    return Fail(Errc::kInvalidArgument, "a label is UTF-8 of at most 64 bytes");
  }
  NewKey made;
  made.key = StrCat(kPrefix, crypto::RandomHex(*random_, kSecretBytes));
  made.info = {.id = crypto::RandomHex(*random_, kIdBytes),
               .tenant = tenant,
               .label = label,
               .hint = made.key.substr(0, kHintBytes),
               .created = clock_->Now()};
  SOMA_ASSIGN(store::Transaction transaction, store::Transaction::Begin(database_));
  SOMA_TRY(InsertTenant(tenant, made.info.created));
  SOMA_TRY(InsertKey(made));
  SOMA_TRY(RecordChange("key created", made.info.id, tenant));
  SOMA_TRY(transaction.Commit());
  return made;
}

Result<std::vector<KeyInfo>> Keyring::ListKeys() {
  SOMA_ASSIGN(store::Statement query,
              database_.Prepare("SELECT id, tenant, label, hint, created, revoked FROM keys "
                                "ORDER BY created, id"));
  std::vector<KeyInfo> keys;
  while (true) {
    SOMA_ASSIGN(const bool row, query.Step());
    if (!row) return keys;
    KeyInfo key{.id = query.Text(0),
                .tenant = {query.Text(1)},
                .label = query.Text(2),
                .hint = query.Text(3),
                .created = Loaded(query.Integer(4))};
    if (!query.IsNull(5)) key.revoked = Loaded(query.Integer(5));
    keys.push_back(std::move(key));
  }
}

Status Keyring::RevokeKey(std::string_view id) {
  SOMA_ASSIGN(store::Transaction transaction, store::Transaction::Begin(database_));
  SOMA_ASSIGN(store::Statement query, database_.Prepare("SELECT tenant FROM keys WHERE id = ?"));
  SOMA_ASSIGN(const bool found, query.Bind(1, id).Step());
  if (!found) return Fail(Errc::kNotFound, StrCat("there is no key ", id));
  const TenantId tenant{query.Text(0)};
  query.Reset();
  SOMA_ASSIGN(store::Statement update,
              database_.Prepare("UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"));
  SOMA_TRY(update.Bind(1, Stored(clock_->Now())).Bind(2, id).Run());
  SOMA_TRY(RecordChange("key revoked", std::string(id), tenant));
  return transaction.Commit();
}

}  // namespace soma::tenant
