// SPDX-License-Identifier: Apache-2.0
// A port inside a sandbox as a ByteStream.
#ifndef SOMA_RUNTIME_GUEST_STREAM_H_
#define SOMA_RUNTIME_GUEST_STREAM_H_

#include <chrono>
#include <cstdint>
#include <memory>

#include "aio/stream.h"
#include "aio/task.h"
#include "runtime/guest_link.h"

namespace soma::runtime {

// Connects to a TCP port of the sandbox's own loopback. kUnavailable with the link alive means that
// nothing listens there.
aio::Task<std::unique_ptr<aio::ByteStream>> DialGuest(GuestLink& link, std::uint16_t port,
                                                      std::chrono::nanoseconds timeout);

// A duplex channel as a stream; both sides have said Opened.
std::unique_ptr<aio::ByteStream> MakeGuestStream(std::shared_ptr<GuestChannel> channel);

}  // namespace soma::runtime

#endif  // SOMA_RUNTIME_GUEST_STREAM_H_
