// SPDX-License-Identifier: Apache-2.0
#include "walls/step.h"

#include <string_view>

namespace soma::walls {

std::string_view StepName(Step step) {
  switch (step) {
    case Step::kNone:
      return "nothing";
    case Step::kPrepareMounts:
      return "prepare mount";
    case Step::kCloneOuter:
      return "clone outer namespaces";
    case Step::kCloneTask:
      return "clone namespaces";
    case Step::kWriteIdMaps:
      return "write id maps";
    case Step::kEnterCgroup:
      return "enter cgroup";
    case Step::kTieToLauncher:
      return "tie to launcher";
    case Step::kHostName:
      return "host name";
    case Step::kLoopback:
      return "loopback";
    case Step::kCapture:
      return "network capture";
    case Step::kMountRoot:
      return "mount root";
    case Step::kMountItem:
      return "mount";
    case Step::kSealMounts:
      return "seal mounts";
    case Step::kEnterRoot:
      return "enter root";
    case Step::kLimits:
      return "limits";
    case Step::kTerminal:
      return "terminal";
    case Step::kIdentity:
      return "identity";
    case Step::kBoundCapabilities:
      return "bound capabilities";
    case Step::kDropCapabilities:
      return "drop capabilities";
    case Step::kNoNewPrivileges:
      return "no_new_privs";
    case Step::kLandlock:
      return "landlock";
    case Step::kSeccomp:
      return "seccomp";
    case Step::kHandOut:
      return "hand out descriptors";
    case Step::kDescriptors:
      return "arrange descriptors";
    case Step::kForkCommand:
      return "fork command";
    case Step::kWorkingDirectory:
      return "working directory";
    case Step::kExecute:
      return "execute";
  }
  return "unknown step";
}

}  // namespace soma::walls
