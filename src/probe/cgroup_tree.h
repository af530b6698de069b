// SPDX-License-Identifier: Apache-2.0
// Where the caller's own cgroups are: the directory in the v2 hierarchy and in that of a v1
// controller.
#ifndef SOMA_PROBE_CGROUP_TREE_H_
#define SOMA_PROBE_CGROUP_TREE_H_

#include <optional>
#include <string>
#include <string_view>

namespace soma::probe {

struct CgroupPlace {
  std::string directory;  // of the caller's own cgroup
  bool v2 = false;
};

// From the texts of /proc/self/mountinfo and /proc/self/cgroup. `controller` is "" for the v2
// hierarchy as such (freeze, kill), else the place where that controller is: v1's hierarchy if it
// has the controller, else v2.
std::optional<CgroupPlace> FindCgroup(std::string_view mountinfo, std::string_view cgroup,
                                      std::string_view controller);

}  // namespace soma::probe

#endif  // SOMA_PROBE_CGROUP_TREE_H_
