// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "probe/probes.h"
#include "probe/report.h"
#include "probe/trial.h"

namespace soma::probe {

Row ProbeUserNamespace(const std::string& scratch_parent) {
  return ProbeUserNamespace(Scratch(scratch_parent));
}

Report RunAll(const std::string& scratch_parent) {
  const Scratch scratch(scratch_parent);
  Report report;
  report.rows = {
      ProbeUserNamespace(scratch),
      ProbeMountNamespace(scratch),
      ProbePidNamespace(),
      ProbeNetworkNamespace(),
      ProbeUtsNamespace(),
      ProbeLandlock(scratch),
      ProbeLandlockTcp(),
      ProbeLandlockScope(),
      ProbeSeccomp(),
      ProbeSeccompNotify(),
      ProbeCgroupKill(),
      ProbeCgroupPids(),
      ProbeCgroupMemory(),
      ProbeOverlay(scratch),
      ProbeFuse(scratch),
      ProbeIdMappedMount(scratch),
      ProbeErofs(scratch),
      ProbeLoopDevice(scratch),
      ProbeTransparentProxy(),
      ProbeKvm(),
      ProbeSevSnp(),
      ProbeTdx(),
      ProbeGvisor(),
      ProbeEmulator(),
  };
  return report;
}

}  // namespace soma::probe
