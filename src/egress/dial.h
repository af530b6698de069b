// SPDX-License-Identifier: Apache-2.0
// Dial: a TCP connection to exactly one address that has been decided on.
#ifndef SOMA_EGRESS_DIAL_H_
#define SOMA_EGRESS_DIAL_H_

#include <chrono>

#include "aio/loop.h"
#include "aio/task.h"
#include "egress/socket_address.h"
#include "sys/fd.h"

namespace soma::egress {

// kDeadlineExceeded after `timeout`; else what connect(2) said. The socket is non-blocking.
aio::Task<Fd> Dial(aio::Loop& loop, Endpoint to, std::chrono::nanoseconds timeout);

}  // namespace soma::egress

#endif  // SOMA_EGRESS_DIAL_H_
