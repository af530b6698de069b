// SPDX-License-Identifier: Apache-2.0
// The CPUs that the calling thread may run on (sched_setaffinity(2)).
#ifndef SOMA_SYS_CPU_AFFINITY_H_
#define SOMA_SYS_CPU_AFFINITY_H_

#include <sched.h>

namespace soma::sys {

// Keeps the calling thread, and every child it makes meanwhile, on the CPU where it is now.
//
// A launch is one chain of hand-overs between two processes: only one of them has work at any time.
// On one CPU a hand-over is a context switch; across two it is an interrupt that wakes a sleeping
// CPU, and every change of a page table waits for both. In a virtual machine that is a third of the
// whole launch (bench/run_vs_bwrap).
//
// Errors leave everything as it is: this is speed, not a wall.
class StayOnThisCpu {
 public:
  StayOnThisCpu() noexcept;
  ~StayOnThisCpu() { Release(); }
  StayOnThisCpu(const StayOnThisCpu&) = delete;
  StayOnThisCpu& operator=(const StayOnThisCpu&) = delete;

  // Gives the calling thread back the CPUs it had. Async-signal-safe: a forked child calls it on
  // its copy.
  void Release() noexcept;

 private:
  cpu_set_t before_{};
  bool pinned_ = false;
};

}  // namespace soma::sys

#endif  // SOMA_SYS_CPU_AFFINITY_H_
