// SPDX-License-Identifier: Apache-2.0
// The host ids of one slot: a place for one sandbox at a time. Pure arithmetic.
//
// The numbers lie above what distributions and systemd give out: systemd uses 0x80000 to 0x6fffffff
// for containers and reserves nothing between 0x70000000 and 0x7fffffff (UIDS-GIDS.md of systemd).
// A slot's ids are used again only after its sandbox, its files included, is gone.
#ifndef SOMA_LAUNCHER_IDS_H_
#define SOMA_LAUNCHER_IDS_H_

#include <cstdint>

#include "sys/service_user.h"

namespace soma::launcher {

inline constexpr std::uint32_t kSlotsMax = 2048;
inline constexpr std::uint32_t kRangeSize = 65536;
inline constexpr std::uint32_t kFirstRange = 0x70000000;
inline constexpr std::uint32_t kFirstMonitor = kFirstRange + (kSlotsMax * kRangeSize);

struct SlotIds {
  // The monitor: outside of every sandbox's range, so that no sandbox can signal or trace it.
  std::uint32_t monitor = 0;
  // Root of the outer user namespace, which owns the network. Not root of the inner one: equal ids
  // would let root inside write the network's sysctls.
  std::uint32_t outer_root = 0;
  // Root inside; kRangeSize ids from here on.
  std::uint32_t first = 0;
};

constexpr SlotIds IdsOfSlot(std::uint32_t slot) {
  return {.monitor = kFirstMonitor + (2 * slot),
          .outer_root = kFirstMonitor + (2 * slot) + 1,
          .first = kFirstRange + (slot * kRangeSize)};
}
static_assert(IdsOfSlot(kSlotsMax - 1).outer_root < 0x7fffffff);
static_assert(IdsOfSlot(kSlotsMax - 1).first + kRangeSize <= kFirstMonitor);
static_assert(IdsOfSlot(kSlotsMax - 1).outer_root < sys::kServiceUser);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_IDS_H_
