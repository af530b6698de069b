// SPDX-License-Identifier: Apache-2.0
// RunReport: what `soma run` says about a run when it is over: lines for a person, JSON for a
// program. Pure values and text.
#ifndef SOMA_FRONT_RUN_REPORT_H_
#define SOMA_FRONT_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "front/limit_watch.h"
#include "front/named_hidden.h"
#include "plan/view.h"
#include "policy/model.h"
#include "walls/denied.h"
#include "walls/launch.h"

namespace soma::front {

// What only the levels above `process` have.
struct SandboxFacts {
  std::string id;
  std::string template_id;
  std::string directory;  // where the workspace's copy lies inside
  std::string kernel;     // its release, as the guest says
};

struct RunReport {
  std::string run_id;
  std::string level;
  std::string level_reason;
  std::string profile;
  std::string workspace;
  std::vector<std::string> command;
  std::vector<std::string> notices;  // of the policy: rules without effect
  std::vector<std::string> notes;    // of the walls: regimes
  std::vector<std::string> missing;  // what stands less than the level promises
  std::vector<plan::HiddenPath> hidden;
  // Of a command that failed: what it names and can't see (front/named_hidden.h).
  std::vector<HiddenName> named_hidden;
  std::vector<walls::Denied> refusals;  // equal ones once, with their number
  std::uint64_t refusals_beyond = 0;    // that were too many to keep
  LimitHits hits;
  bool limits_by_cgroup = false;
  policy::Limits limits;
  std::string how;     // it ended, in words; foreign text above `process`
  walls::TaskEnd end;  // its numbers, at `process`
  int exit_code = 0;
  std::optional<SandboxFacts> sandbox;

  // Merges with an equal one that is kept already. At most kRefusalsMax are kept.
  void AddRefusal(const walls::Denied& denied);
};

inline constexpr std::size_t kRefusalsMax = 200;

// Which limit ended or held the run, and by what means: one line each, empty when none was hit.
std::vector<std::string> LimitLines(const RunReport& report);

// What goes to stderr after the run: limits, then refusals, each with rule and remedy; nothing when
// there is nothing to say. Every line starts with "soma: ".
std::string SummaryText(const RunReport& report);

// One JSON object, with a newline at its end.
std::string ReportJson(const RunReport& report);

}  // namespace soma::front

#endif  // SOMA_FRONT_RUN_REPORT_H_
