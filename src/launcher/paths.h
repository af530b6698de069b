// SPDX-License-Identifier: Apache-2.0
// Where the launcher keeps things. Every name below is the launcher's own choice; of a message only
// a checked sandbox or template name ever becomes one component.
#ifndef SOMA_LAUNCHER_PATHS_H_
#define SOMA_LAUNCHER_PATHS_H_

#include <string>

#include "base/result.h"
#include "control/messages.h"

namespace soma::launcher {

struct Paths {
  std::string state;    // <state>/launcher: survives a reboot, 0700
  std::string runtime;  // sockets and records: ends with the machine, others may only pass through

  std::string Templates() const { return state + "/templates"; }
  std::string Kernel() const { return state + "/kernel"; }
  // Empty ext4 images, one for each disk size that was asked for.
  std::string Blanks() const { return state + "/blanks"; }
  // Images of sandboxes between their making and their mounting; unlinked then.
  std::string Uppers() const { return state + "/uppers"; }
  // Without root: what each sandbox writes, one directory a sandbox, removed after it.
  std::string Trees() const { return state + "/trees"; }
  // A tmpfs in the worker's own mount namespace is here; outside it stays empty.
  std::string Mounts() const { return state + "/mounts"; }
  std::string Lock() const { return state + "/lock"; }
  std::string Socket() const { return runtime + "/launcher.sock"; }
  std::string Records() const { return runtime + "/sandboxes"; }
  std::string Monitors() const { return runtime + "/monitors"; }

  std::string Record(const control::SandboxId& id) const {
    return Records() + "/" + std::string(id.text());
  }
  std::string Tree(const control::SandboxId& id) const {
    return Trees() + "/" + std::string(id.text());
  }
  std::string MonitorSocket(const control::SandboxId& id) const {
    return Monitors() + "/" + std::string(id.text()) + ".sock";
  }
};

// Makes what is missing, with the modes above, and clears Uppers().
Status PreparePaths(const Paths& paths);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_PATHS_H_
