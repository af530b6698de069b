// SPDX-License-Identifier: Apache-2.0
// RunRecord: the events of one `soma run` in the journal. Fails closed: what can't be recorded does
// not start.
#ifndef SOMA_FRONT_RUN_RECORD_H_
#define SOMA_FRONT_RUN_RECORD_H_

#include <string>

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
  Status Refusal(const walls::Denied& denied);
  // A run that was refused before it began: bad policy, minimum not met.
  Status NotStarted(std::string_view command, std::string_view why);
  Status End(const RunReport& report);

 private:
  audit::Recorder& recorder_;
  std::string run_id_;
};

}  // namespace soma::front

#endif  // SOMA_FRONT_RUN_RECORD_H_
