// SPDX-License-Identifier: Apache-2.0
#include "egress/flushing_recorder.h"

#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/recorder.h"
#include "base/result.h"

namespace soma::egress {

Status FlushingRecorder::Record(const audit::Event& event, audit::Durability durability) {
  SOMA_TRY(journal_.Record(event, durability));
  if (durability != audit::Durability::kSoon || scheduled_.exchange(true)) return {};
  workers_.Post([this] {
    // Cleared first: a record that comes during the flush starts another one.
    scheduled_.store(false);
    // A failure stays in the journal and refuses the next record.
    (void)journal_.Flush();
  });
  return {};
}

}  // namespace soma::egress
