// SPDX-License-Identifier: Apache-2.0
#include "probe/report.h"

#include <cstddef>
#include <string_view>

#include "base/check.h"

namespace soma::probe {
namespace {

struct Names {
  std::string_view name;
  std::string_view purpose;
};

constexpr Names kNames[kFeatureCount] = {
    {"user-namespace", "sandboxes without root"},
    {"mount-namespace", "own view of the file tree"},
    {"pid-namespace", "own processes only"},
    {"network-namespace", "no way out but ours"},
    {"uts-namespace", "own host name"},
    {"landlock", "file rules that no mount trick passes"},
    {"landlock-tcp", "TCP rules where no network namespace is"},
    {"landlock-scope", "signals and abstract sockets stay inside"},
    {"seccomp", "a small kernel surface"},
    {"seccomp-notify", "exact refusals with a reason"},
    {"cgroup-kill", "freeze and end all at once"},
    {"cgroup-pids", "a limit on processes"},
    {"cgroup-memory", "a limit on memory"},
    {"overlay", "throw-away and review layers"},
    {"fuse", "reports of reads that are hidden"},
    {"id-mapped-mount", "files keep their owner when root runs soma"},
    {"erofs", "templates without unpacking"},
    {"loop-device", "disk quotas for containers"},
    {"transparent-proxy", "network rules by name"},
    {"kvm", "the level microvm"},
    {"sev-snp", "the level confidential (AMD)"},
    {"tdx", "the level confidential (Intel)"},
    {"gvisor", "the level gvisor"},
    {"emulator", "the level emulated"},
};

}  // namespace

std::string_view FindingName(Finding finding) {
  switch (finding) {
    case Finding::kProven:
      return "proven";
    case Finding::kAbsent:
      return "absent";
    case Finding::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view FeatureName(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)].name;
}

std::string_view FeaturePurpose(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)].purpose;
}

const Row& Report::row(Feature feature) const {
  const auto index = static_cast<std::size_t>(feature);
  SOMA_CHECK(index < rows.size() && rows[index].feature == feature);
  return rows[index];
}

}  // namespace soma::probe
