// SPDX-License-Identifier: Apache-2.0
// The probes, one a feature; each in the file that its group is named after.
#ifndef SOMA_PROBE_PROBES_H_
#define SOMA_PROBE_PROBES_H_

#include "probe/report.h"
#include "probe/trial.h"

namespace soma::probe {

// namespace_probes.cc
Row ProbeUserNamespace(const Scratch& scratch);
Row ProbeMountNamespace(const Scratch& scratch);
Row ProbePidNamespace();
Row ProbeNetworkNamespace();
Row ProbeUtsNamespace();

// filter_probes.cc
Row ProbeLandlock(const Scratch& scratch);
Row ProbeLandlockTcp();
Row ProbeLandlockScope();
Row ProbeSeccomp();
Row ProbeSeccompNotify();

// cgroup_probes.cc
Row ProbeCgroupKill();
Row ProbeCgroupPids();
Row ProbeCgroupMemory();

// filesystem_probes.cc
Row ProbeOverlay(const Scratch& scratch);
Row ProbeFuse(const Scratch& scratch);
Row ProbeIdMappedMount(const Scratch& scratch);
Row ProbeErofs(const Scratch& scratch);
Row ProbeLoopDevice(const Scratch& scratch);

// network_probes.cc
Row ProbeTransparentProxy();

// hardware_probes.cc (and kvm_probe.cc for ProbeKvm)
Row ProbeSevSnp();
Row ProbeTdx();
Row ProbeEmulator();

}  // namespace soma::probe

#endif  // SOMA_PROBE_PROBES_H_
