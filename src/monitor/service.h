// SPDX-License-Identifier: Apache-2.0
// Service: the monitor's life. Waits for its order, builds the sandbox's walls (walls/launch.h),
// gives up every privilege, then watches: the lease, pid 1, the launcher and at most one attached
// server. Ends when the sandbox has ended and everybody who listens has been told, or when the
// launcher goes away before there is an order.
//
// It moves packets and descriptors; what to answer is the Desk's. It never reads from the wire.
#ifndef SOMA_MONITOR_SERVICE_H_
#define SOMA_MONITOR_SERVICE_H_

#include "base/clock.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::monitor {

// `link` is the socket to the launcher's worker. Returns when there is nothing more to do; the
// error, if any, has been told to the launcher already.
Status Serve(Fd link, Clock& clock);

}  // namespace soma::monitor

#endif  // SOMA_MONITOR_SERVICE_H_
