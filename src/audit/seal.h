// SPDX-License-Identifier: Apache-2.0
// Sealing: a writer that comes later states in the head file how it found the segments of writers
// that died. From then on a cut there is found, too.
#ifndef SOMA_AUDIT_SEAL_H_
#define SOMA_AUDIT_SEAL_H_

#include "audit/head.h"
#include "audit/journal.h"
#include "base/result.h"

namespace soma::audit {

// Seals the open segments that nobody holds a lock on (a few at a time), and a segment that was
// made without a line in the head file. A damaged or missing one is left as it is: the verifier
// names it. Errors are those of the head file.
Status SealDeadSegments(const JournalOptions& options, LockedHead& head);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_SEAL_H_
