// SPDX-License-Identifier: Apache-2.0
// Capabilities of the calling thread. Raw calls for between fork and exec: 0 or an errno. Bit n of
// a set is capability n of linux/capability.h. Source: capabilities(7).
#ifndef SOMA_SYS_CAPABILITY_SET_H_
#define SOMA_SYS_CAPABILITY_SET_H_

#include <cstdint>

namespace soma::sys {

// The effective set; 0 if it can't be read.
std::uint64_t EffectiveCapabilities() noexcept;
inline bool HasCapability(int capability) noexcept {
  return (EffectiveCapabilities() >> static_cast<unsigned>(capability) & 1) != 0;
}

// Drops every capability that isn't in `keep` from the bounding set, and the whole ambient set.
// Needs CAP_SETPCAP, but is 0 when the thread has no capability at all: then there is nothing to
// bound.
int BoundCapabilities(std::uint64_t keep) noexcept;
// Permitted = effective = `keep`, inheritable empty.
int SetCapabilities(std::uint64_t keep) noexcept;

}  // namespace soma::sys

#endif  // SOMA_SYS_CAPABILITY_SET_H_
