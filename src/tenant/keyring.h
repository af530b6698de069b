// SPDX-License-Identifier: Apache-2.0
// Keyring: API keys and whose they are.
//
// A key is `e2b_` and 40 hexadecimal digits (the shape that E2B's SDKs check): 160 random bits. It
// is shown once, when it is made; stored is its SHA-256. A slow password hash would only protect
// secrets that can be guessed, and 160 random bits can't: it would cost every request milliseconds
// and give an attacker a way to use up the processor.
//
// Looking a hash up in an index takes a time that depends on the hash, not on the key: to learn
// from it one would have to steer SHA-256. The hash that was found is still compared in constant
// time, so that no later change of the lookup makes it leak.
//
// Blocks on the disk; one thread at a time.
#ifndef SOMA_TENANT_KEYRING_H_
#define SOMA_TENANT_KEYRING_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/recorder.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/database.h"

namespace soma::tenant {

// Names a tenant: 1 to 64 of [a-z0-9-], first a letter or digit. Unique on a server.
struct TenantId {
  std::string name;
  friend bool operator==(const TenantId&, const TenantId&) = default;
};

bool IsTenantName(std::string_view name);

struct KeyInfo {
  std::string id;  // 8 hexadecimal digits, for `soma key revoke`; not secret
  TenantId tenant;
  std::string label;  // what its maker wrote, at most 64 bytes
  std::string hint;   // the key's first 8 characters ("e2b_1a2b"), to recognise it by
  WallTime created{};
  std::optional<WallTime> revoked;
};

struct NewKey {
  KeyInfo info;
  std::string key;  // nobody can show it again
};

class Keyring {
 public:
  // All outlive the keyring. `path` is a file in a directory that exists.
  static Result<Keyring> Open(const std::string& path, audit::Recorder& recorder, Clock& clock,
                              Random& random);

  // Whose key it is. kUnauthenticated for everything that is not a valid key, always with the same
  // message; other codes mean that nobody could look.
  Result<TenantId> Authenticate(std::string_view key);

  // Makes the tenant, too, when it is new. The change is in the journal before it takes effect.
  Result<NewKey> CreateKey(const TenantId& tenant, const std::string& label);
  // Oldest first, revoked ones included.
  Result<std::vector<KeyInfo>> ListKeys();
  // kNotFound: no such id. Revoking twice is fine.
  Status RevokeKey(std::string_view id);

 private:
  Keyring(store::Database database, audit::Recorder& recorder, Clock& clock, Random& random)
      : database_(std::move(database)), recorder_(&recorder), clock_(&clock), random_(&random) {}
  Status RecordChange(std::string_view what, const std::string& key_id, const TenantId& tenant);
  Status InsertTenant(const TenantId& tenant, WallTime now);
  Status InsertKey(const NewKey& made);

  store::Database database_;
  audit::Recorder* recorder_;
  Clock* clock_;
  Random* random_;
};

}  // namespace soma::tenant

#endif  // SOMA_TENANT_KEYRING_H_
