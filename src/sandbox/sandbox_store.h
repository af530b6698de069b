// SPDX-License-Identifier: Apache-2.0
// SandboxStore: keeps SandboxRecords across the server's death.
#ifndef SOMA_SANDBOX_SANDBOX_STORE_H_
#define SOMA_SANDBOX_SANDBOX_STORE_H_

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/record.h"

namespace soma::sandbox {

class SandboxStore {
 public:
  virtual ~SandboxStore() = default;
  // Inserts or replaces. On disk when it returns.
  virtual Status Save(const SandboxRecord& record) = 0;
  // Absent is fine.
  virtual Status Remove(const std::string& id) = 0;
  virtual Result<std::vector<SandboxRecord>> LoadAll() = 0;
};

// For tests.
class MemorySandboxStore final : public SandboxStore {
 public:
  Status Save(const SandboxRecord& record) override {
    records.insert_or_assign(record.id, record);
    return {};
  }
  Status Remove(const std::string& id) override {
    records.erase(id);
    return {};
  }
  Result<std::vector<SandboxRecord>> LoadAll() override {
    std::vector<SandboxRecord> all;
    for (const auto& [id, record] : records) all.push_back(record);
    return all;
  }
  std::map<std::string, SandboxRecord> records;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_SANDBOX_STORE_H_
