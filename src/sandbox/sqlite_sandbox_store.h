// SPDX-License-Identifier: Apache-2.0
// SqliteSandboxStore: SandboxRecords in a database of their own.
//
// It survives the death of every process but not a power cut, since a power cut ends the sandboxes,
// too: so a write is not synced and costs microseconds, and may be made on the loop's thread.
#ifndef SOMA_SANDBOX_SQLITE_SANDBOX_STORE_H_
#define SOMA_SANDBOX_SQLITE_SANDBOX_STORE_H_

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sandbox/record.h"
#include "sandbox/sandbox_store.h"
#include "store/database.h"

namespace soma::sandbox {

class SqliteSandboxStore final : public SandboxStore {
 public:
  // `path` is a file in a directory that exists. One that a power cut has damaged begins anew: the
  // sandboxes in it ended with the machine.
  static Result<SqliteSandboxStore> Open(const std::string& path);

  Status Save(const SandboxRecord& record) override;
  Status Remove(const std::string& id) override;
  Result<std::vector<SandboxRecord>> LoadAll() override;

 private:
  static Result<SqliteSandboxStore> OpenAsIs(const std::string& path);
  explicit SqliteSandboxStore(store::Database database) : database_(std::move(database)) {}
  store::Database database_;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_SQLITE_SANDBOX_STORE_H_
