// SPDX-License-Identifier: Apache-2.0
// Finds and reads the policy files of a run: system, user, project, --policy.
//
// Reads at most kPolicyFileBytesMax of a regular file, never waits (a FIFO in the place of a file
// is an error), and doesn't follow a symbolic link for the project's file: the tree is not ours.
#ifndef SOMA_WORKSPACE_POLICY_FILES_H_
#define SOMA_WORKSPACE_POLICY_FILES_H_

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/load.h"

namespace soma::workspace {

struct PolicyPlaces {
  std::string system = "/etc/soma/policy.toml";
  std::string home;                // for ~/.config/soma/policy.toml; empty: no user file
  std::string config;              // $XDG_CONFIG_HOME, if set
  std::string workspace;           // for .soma.toml, .soma/policy.toml, .soma/policy.json
  std::vector<std::string> named;  // --policy: these have to exist
};

// In the order of merging. Missing files are left out; one that can't be read, or isn't a regular
// file, is an error: a policy that can't be read is not an empty policy.
Result<std::vector<policy::Source>> ReadPolicyFiles(const PolicyPlaces& places);

}  // namespace soma::workspace

#endif  // SOMA_WORKSPACE_POLICY_FILES_H_
