// SPDX-License-Identifier: Apache-2.0
// What the tests of the agent share.
#ifndef SOMA_GUEST_AGENT_TEST_SUPPORT_H_
#define SOMA_GUEST_AGENT_TEST_SUPPORT_H_

#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "guest/agent_driver.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {

// A directory that is gone afterwards, writable for everybody.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = "/tmp/soma-guest-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
    ::chmod(path_.c_str(), 0777);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return StrCat(path_, "/", name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string Contents(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

inline std::uint64_t AgentMemory(int pid, const char* field) {
  std::ifstream file(StrCat("/proc/", pid, "/smaps_rollup"));
  for (std::string word; file >> word;) {
    std::uint64_t value = 0;
    if (word == field && file >> value) return value * 1024;
  }
  return 0;
}

inline std::vector<wire::Record> Records(const std::string& bytes) {
  wire::RecordReader reader;
  reader.Append(AsBytes(bytes));
  std::vector<wire::Record> records;
  for (auto record = reader.Next(); record && *record; record = reader.Next()) {
    records.push_back(**record);
  }
  return records;
}

inline std::uint32_t PidOf(AgentDriver& agent, wire::ChannelId channel) {
  agent.Until([&] { return agent[channel].Find<wire::Started>() != nullptr; });
  return agent[channel].Find<wire::Started>()->pid;
}

}  // namespace soma::guest

#endif  // SOMA_GUEST_AGENT_TEST_SUPPORT_H_
