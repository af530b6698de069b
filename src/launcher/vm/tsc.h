// SPDX-License-Identifier: Apache-2.0
// The frequency of this processor's time stamp counter, for the guest's kernel command line.
//
// A guest without a PIT cannot calibrate the counter: measured, 3 of 8 boots under emulation hang
// in "Unable to calibrate against PIT", and none of 150 does when the kernel gets tsc_early_khz.
// Under TCG the guest's RDTSC returns the host's counter.
#ifndef SOMA_LAUNCHER_VM_TSC_H_
#define SOMA_LAUNCHER_VM_TSC_H_

#include <cstdint>

#include "base/result.h"

namespace soma::launcher {

// In kHz, from RDTSC against CLOCK_MONOTONIC_RAW over about 20 ms, during which the caller sleeps.
// Measure once per process. kUnimplemented when the counter does not advance as a constant-rate one
// does.
Result<std::uint64_t> MeasureTscKhz();

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_VM_TSC_H_
