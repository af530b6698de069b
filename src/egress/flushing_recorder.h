// SPDX-License-Identifier: Apache-2.0
// FlushingRecorder: a journal whose kSoon records become durable within milliseconds, without
// anybody waiting: the first one starts a flush on a worker, those that come meanwhile share it or
// the next.
#ifndef SOMA_EGRESS_FLUSHING_RECORDER_H_
#define SOMA_EGRESS_FLUSHING_RECORDER_H_

#include <atomic>

#include "aio/worker_pool.h"
#include "audit/event.h"
#include "audit/journal.h"
#include "audit/recorder.h"
#include "base/result.h"

namespace soma::egress {

class FlushingRecorder final : public audit::Recorder {
 public:
  // Both outlive it, and the pool must have ended (be destroyed) before it goes.
  FlushingRecorder(audit::Journal& journal, aio::WorkerPool& workers)
      : journal_(journal), workers_(workers) {}

  // Thread-safe.
  Status Record(const audit::Event& event, audit::Durability durability) override;

 private:
  audit::Journal& journal_;
  aio::WorkerPool& workers_;
  std::atomic<bool> scheduled_{false};
};

}  // namespace soma::egress

#endif  // SOMA_EGRESS_FLUSHING_RECORDER_H_
