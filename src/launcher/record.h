// SPDX-License-Identifier: Apache-2.0
// Record: what a later worker must know about a sandbox to adopt it or to clean up after it.
// Written before the sandbox's monitor gets its order, removed when nothing of it is left.
#ifndef SOMA_LAUNCHER_RECORD_H_
#define SOMA_LAUNCHER_RECORD_H_

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "control/messages.h"
#include "launcher/paths.h"
#include "sys/child_process.h"

namespace soma::launcher {

struct Record {
  control::SandboxId sandbox;
  control::Level level = control::Level::kContainer;
  std::uint32_t slot = 0;
  sys::ProcessIdentity monitor;
  friend bool operator==(const Record&, const Record&) = default;
};

Bytes Encode(const Record& record);
Result<Record> DecodeRecord(ByteView bytes);

// Not synced: after a power loss there is no sandbox either.
Status SaveRecord(const Paths& paths, const Record& record);
void RemoveRecord(const Paths& paths, const control::SandboxId& sandbox);
// All that decode; the others are removed.
Result<std::vector<Record>> LoadRecords(const Paths& paths);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_RECORD_H_
