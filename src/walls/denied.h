// SPDX-License-Identifier: Apache-2.0
// Denied: one refusal, exact enough to act on: what was tried, on which real object, which rule
// refused it, and the smallest change that would allow it.
#ifndef SOMA_WALLS_DENIED_H_
#define SOMA_WALLS_DENIED_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"

namespace soma::walls {

// The texts are foreign bytes made safe for a terminal (base/text.h EscapeForTerminal), at most
// kDeniedTextBytesMax each.
inline constexpr std::size_t kDeniedTextBytesMax = 1024;

struct Denied {
  WallTime when;
  pid_t pid = 0;        // as the supervisor sees it; 0 when not known
  std::string command;  // the thread's name (comm)
  std::string tried;    // "open for writing", "connect", … (RequestKindName)
  std::string asked;    // the path or address as the program wrote it
  std::string object;   // the real object: absolute, symlinks resolved; "host:port" for addresses
  std::string rule;     // the rule that refused, in the policy's words
  std::string remedy;   // the smallest change that would allow it; empty when nothing may
  int errno_value = 0;  // what the program got
  std::uint64_t times = 1;  // equal refusals in a row are counted, not repeated

  // Equal but for time, process and count.
  bool SameRefusal(const Denied& other) const;
};

// Collects refusals up to a bound. A program that is refused in a loop costs one entry; one that
// varies its attempts fills the queue, and what comes then is only counted. Not thread-safe.
class DeniedQueue {
 public:
  explicit DeniedQueue(std::size_t entries_max = 512) : entries_max_(entries_max) {}

  void Push(Denied event);
  // Takes all that is there, in order.
  std::vector<Denied> Drain();
  // Refusals that found the queue full since the start. They were refused all the same.
  std::uint64_t dropped() const { return dropped_; }
  bool empty() const { return entries_.empty(); }

 private:
  std::size_t entries_max_;
  std::deque<Denied> entries_;
  std::uint64_t dropped_ = 0;
};

}  // namespace soma::walls

#endif  // SOMA_WALLS_DENIED_H_
