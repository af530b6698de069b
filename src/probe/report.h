// SPDX-License-Identifier: Apache-2.0
// What this machine can really enforce, for this caller. Each row is proven by doing it: a wall
// counts when a live attempt to pass it was stopped, not when a system call returned 0.
#ifndef SOMA_PROBE_REPORT_H_
#define SOMA_PROBE_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soma::probe {

enum class Finding : std::uint8_t {
  kProven,   // done live, and what should be stopped was stopped
  kAbsent,   // tried, and it isn't there or doesn't stop anything
  kUnknown,  // couldn't be tried to the end
};
std::string_view FindingName(Finding finding);

// The order is that of the table.
enum class Feature : std::uint8_t {
  kUserNamespace,
  kMountNamespace,
  kPidNamespace,
  kNetworkNamespace,
  kUtsNamespace,
  kLandlock,
  kLandlockTcp,
  kLandlockScope,
  kSeccomp,
  kSeccompNotify,
  kCgroupKill,
  kCgroupPids,
  kCgroupMemory,
  kOverlay,
  kFuse,
  kIdMappedMount,
  kErofs,
  kLoopDevice,
  kTransparentProxy,
  kKvm,
  kSevSnp,
  kTdx,
  kGvisor,
  kEmulator,
};
inline constexpr int kFeatureCount = static_cast<int>(Feature::kEmulator) + 1;
std::string_view FeatureName(Feature feature);  // "user-namespace", …; stable, for --json
// What it is for, in a few words.
std::string_view FeaturePurpose(Feature feature);

struct Row {
  Feature feature = Feature::kUserNamespace;
  Finding finding = Finding::kUnknown;
  std::string evidence;  // how it was proven, or which step failed with what
  std::string remedy;    // what to do about it; empty when proven, or when nothing can be done
  double figure = 0;     // kKvm: million ring-0 instructions a second; kLandlock: the ABI; else 0
};

struct Report {
  std::vector<Row> rows;  // one a feature, in order

  const Row& row(Feature feature) const;
  bool Proven(Feature feature) const { return row(feature).finding == Finding::kProven; }
};

// Runs every probe; about a tenth of a second. Forks children that make the attempts, so call it
// from a single-threaded process. Leaves nothing behind. `scratch_parent` is an existing writable
// directory on the file system that the sandboxes will use (id-mapped mounts depend on it).
Report RunAll(const std::string& scratch_parent);

// Only that row: for a caller that has to choose a level, or needs this one thing. `scratch_parent`
// as above.
Row ProbeUserNamespace(const std::string& scratch_parent);
Row ProbeKvm();
Row ProbeGvisor();

}  // namespace soma::probe

#endif  // SOMA_PROBE_REPORT_H_
