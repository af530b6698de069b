// SPDX-License-Identifier: Apache-2.0
// RunRecord: the events of one `soma run` in the journal. Fails closed: what can't be recorded does
// not start.
#ifndef SOMA_FRONT_RUN_RECORD_H_
#define SOMA_FRONT_RUN_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "audit/recorder.h"
#include "base/result.h"
#include "front/run_report.h"
#include "policy/model.h"
#include "walls/denied.h"

namespace soma::front {

class RunRecord {
 public:
  RunRecord(audit::Recorder& recorder, std::string run_id)
      : recorder_(recorder), run_id_(std::move(run_id)) {}

  // The policy that holds, then the start.
  Status Start(const RunReport& report, const policy::Policy& policy);
  // Each of the first kRefusalsRecorded; then only those whose number is a power of two, with it: a
  // command that is refused in a loop must not fill the journal's disk.
  Status Refusal(const walls::Denied& denied);
  // A run that was refused before it began: bad policy, minimum not met.
  Status NotStarted(std::string_view command, std::string_view why);
  // Says how many refusals there were when some of them have no record of their own.
  Status End(const RunReport& report);

 private:
  audit::Recorder& recorder_;
  std::string run_id_;
  std::uint64_t refusals_ = 0;
  std::uint64_t refusals_unrecorded_ = 0;
};

inline constexpr std::uint64_t kRefusalsRecorded = 20'000;

}  // namespace soma::front

#endif  // SOMA_FRONT_RUN_RECORD_H_
