// SPDX-License-Identifier: Apache-2.0
// Which isolation levels a report's findings allow. Pure.
#ifndef SOMA_PROBE_LEVELS_H_
#define SOMA_PROBE_LEVELS_H_

#include <string>
#include <string_view>
#include <vector>

#include "probe/report.h"

namespace soma::probe {

struct LevelFinding {
  std::string_view name;  // as in the policy: "process", …
  bool possible = false;
  std::string reason;  // what makes it possible, with what regime; or what is missing
};

// In rising order, `process` first; `emulated`, which is only ever asked for by name, is last.
// Without `none`.
std::vector<LevelFinding> FindLevels(const Report& report);

}  // namespace soma::probe

#endif  // SOMA_PROBE_LEVELS_H_
