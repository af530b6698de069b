// SPDX-License-Identifier: Apache-2.0
// Recorder: what a room needs of the journal, so that it can be tested with a list in memory.
#ifndef SOMA_AUDIT_RECORDER_H_
#define SOMA_AUDIT_RECORDER_H_

#include <cstdint>
#include <vector>

#include "audit/event.h"
#include "base/result.h"

namespace soma::audit {

enum class Durability : std::uint8_t {
  // On disk when Record returns. For what must be in the record before its effect: an allowed way
  // out, an approval, a released secret, a changed key or policy. Blocks for an fdatasync that
  // concurrent callers share; not on an event loop.
  kBeforeEffect,
  // In the kernel's hands when Record returns: our own death by SIGKILL loses nothing. For
  // refusals, starts and ends. A long-lived writer calls Journal::Flush within 5 ms.
  kSoon,
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  // On an error nothing counts as recorded and the caller fails closed: the thing is refused.
  virtual Status Record(const Event& event, Durability durability) = 0;
};

// Keeps the events in memory, in order. For tests.
class MemoryRecorder final : public Recorder {
 public:
  Status Record(const Event& event, Durability) override {
    events.push_back(event);
    return {};
  }
  std::vector<Event> events;
};

}  // namespace soma::audit

#endif  // SOMA_AUDIT_RECORDER_H_
