// SPDX-License-Identifier: Apache-2.0
#include "probe/levels.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "probe/report.h"

namespace soma::probe {
namespace {

// The names of those that aren't proven, "a, b"; empty when all are.
std::string Lacks(const Report& report, std::initializer_list<Feature> features) {
  std::string out;
  for (const Feature feature : features) {
    if (report.Proven(feature)) continue;
    out += StrCat(out.empty() ? "" : ", ", FeatureName(feature));
  }
  return out;
}

LevelFinding Process(const Report& report) {
  using enum Feature;
  const std::string seccomp = Lacks(report, {kSeccomp});
  const std::string namespaces =
      Lacks(report, {kUserNamespace, kMountNamespace, kPidNamespace, kNetworkNamespace});
  if (!seccomp.empty()) return {.name = "process", .reason = "missing: seccomp"};
  if (!namespaces.empty()) {
    if (!report.Proven(kLandlock)) {
      return {.name = "process",
              .reason = StrCat("missing: ", namespaces, ", and landlock in their place")};
    }
    return {.name = "process",
            .possible = true,
            .reason = StrCat("second path: Landlock and seccomp only (missing: ", namespaces,
                             "); no network rule can be kept")};
  }
  const std::string limits = Lacks(report, {kCgroupPids, kCgroupMemory});
  return {.name = "process",
          .possible = true,
          .reason = limits.empty() ? "all walls, limits by cgroup"
                                   : "all walls; limits by setrlimit (no cgroup can be made)"};
}

LevelFinding Container(const Report& report) {
  using enum Feature;
  const std::string walls = Lacks(report, {kUserNamespace, kMountNamespace, kPidNamespace,
                                           kNetworkNamespace, kSeccomp, kOverlay});
  if (!walls.empty()) return {.name = "container", .reason = StrCat("missing: ", walls)};
  const std::string rootful =
      Lacks(report, {kCgroupKill, kCgroupPids, kCgroupMemory, kIdMappedMount, kErofs, kLoopDevice});
  return {
      .name = "container",
      .possible = true,
      .reason = rootful.empty()
                    ? "own id range, cgroups, disk quota"
                    : StrCat("rootless: one id, setrlimit, sized tmpfs (not here: ", rootful, ")")};
}

LevelFinding ByOne(std::string_view name, const Row& row) {
  return {.name = name, .possible = row.finding == Finding::kProven, .reason = row.evidence};
}

LevelFinding Confidential(const Report& report) {
  const bool possible = report.Proven(Feature::kKvm) &&
                        (report.Proven(Feature::kSevSnp) || report.Proven(Feature::kTdx));
  return {.name = "confidential",
          .possible = possible,
          .reason = possible ? "KVM with encrypted memory"
                             : StrCat(report.row(Feature::kSevSnp).evidence, "; ",
                                      report.row(Feature::kTdx).evidence)};
}

// The machine runs inside a rootful container's walls.
LevelFinding Emulated(const Report& report) {
  using enum Feature;
  const std::string lacks =
      Lacks(report, {kEmulator, kUserNamespace, kMountNamespace, kPidNamespace, kNetworkNamespace,
                     kSeccomp, kCgroupKill, kCgroupPids, kCgroupMemory, kErofs, kLoopDevice});
  if (!lacks.empty()) return {.name = "emulated", .reason = StrCat("missing: ", lacks)};
  return {.name = "emulated",
          .possible = true,
          .reason = "a virtual machine on a software CPU, by name only: no hardware boundary"};
}

}  // namespace

std::vector<LevelFinding> FindLevels(const Report& report) {
  return {Process(report),
          Container(report),
          ByOne("gvisor", report.row(Feature::kGvisor)),
          ByOne("microvm", report.row(Feature::kKvm)),
          Confidential(report),
          Emulated(report)};
}

}  // namespace soma::probe
