// SPDX-License-Identifier: Apache-2.0
#include "sys/cpu_affinity.h"

#include <sched.h>

namespace soma::sys {

StayOnThisCpu::StayOnThisCpu() noexcept {
  // Fails on machines with more CPUs than a cpu_set_t holds (1024): then nothing is pinned.
  if (::sched_getaffinity(0, sizeof before_, &before_) != 0 || CPU_COUNT(&before_) < 2) return;
  const int here = ::sched_getcpu();
  if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &before_)) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  pinned_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
}

void StayOnThisCpu::Release() noexcept {
  if (pinned_) (void)::sched_setaffinity(0, sizeof before_, &before_);
  pinned_ = false;
}

}  // namespace soma::sys
