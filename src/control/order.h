// SPDX-License-Identifier: Apache-2.0
// Order: the one message that tells a waiting soma-monitor what to start. From the launcher's
// worker to the monitor that it started itself, over the socket that only these two have; both are
// of one build. Decode is bounded all the same: the monitor acts on it as root.
//
// Descriptors beside it: kOrderListener, kOrderConnection, kOrderWire, kOrderDisk, then the plan's
// slots in their order.
#ifndef SOMA_CONTROL_ORDER_H_
#define SOMA_CONTROL_ORDER_H_

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "control/messages.h"

namespace soma::control {

// A plan of walls for a container is about 4 KiB encoded; one packet must hold it.
inline constexpr std::size_t kOrderPlanBytesMax = 96UL * 1024;
inline constexpr std::size_t kOrderBytesMax = kOrderPlanBytesMax + 256;

inline constexpr std::size_t kOrderListener = 0;    // the monitor's own socket, bound and listening
inline constexpr std::size_t kOrderConnection = 1;  // the first server's connection, attached
inline constexpr std::size_t kOrderWire = 2;        // the host's end of the guest's cable
// What keeps the sandbox's disk mounted until the monitor ends, or /dev/null.
inline constexpr std::size_t kOrderDisk = 3;
inline constexpr std::size_t kOrderFirstSlot = 4;

// The number at which a monitor finds its socket to the worker.
inline constexpr int kMonitorLinkFd = 3;

// "Stay who you are": the regime without root, where there is one id only.
inline constexpr std::uint32_t kKeepUid = 0xffffffff;

struct Order {
  SandboxId sandbox;
  Level level = Level::kContainer;
  std::uint32_t monitor_uid = kKeepUid;  // becomes the owner of the outer user namespace
  std::uint32_t launcher_uid = 0;        // may kill, renew, ask
  std::uint32_t server_uid = 0;          // may attach with the token
  std::uint32_t lease_seconds = 0;
  Token token{};
  Bytes plan;  // walls::Encode

  friend bool operator==(const Order&, const Order&) = default;
};

// kOutOfRange for too long a plan or lease, or without a name.
Result<Bytes> Encode(const Order& order);
Result<Order> DecodeOrder(ByteView packet);

}  // namespace soma::control

#endif  // SOMA_CONTROL_ORDER_H_
