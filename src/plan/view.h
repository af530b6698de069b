// SPDX-License-Identifier: Apache-2.0
// View: which part of the host's file tree a task sees at level `process`, as mounts and Landlock
// rules. Pure: made from the policy and the facts about its paths.
//
// The root is an empty read-only tmpfs in which only what may be seen is mounted. What is hidden
// below something visible is covered, and the folders above it inside a writable place can't be
// renamed. /tmp, /var/tmp, /dev and, when the policy hides it, the home
// directory are private and writable, and gone at the end.
#ifndef SOMA_PLAN_VIEW_H_
#define SOMA_PLAN_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/decide.h"
#include "policy/model.h"
#include "policy/path_facts.h"
#include "walls/plan.h"

namespace soma::plan {

struct HiddenPath {
  std::string path;
  policy::Origin origin;  // of the rule that hides it
};

// A folder in a writable place that can't be renamed, because of what lies below it.
struct PinnedPath {
  std::string path;
  std::string covered;      // the first such place
  policy::Decision reason;  // for it: what the policy says about writing it
};

struct View {
  std::vector<walls::MountItem> mounts;
  std::vector<walls::LandlockRule> landlock;
  std::vector<std::string>
      scratch;                     // private and writable inside; writes there never reach the host
  std::vector<HiddenPath> hidden;  // what exists, is named by a hide rule and is not in the view
  std::vector<PinnedPath> pinned;
  // The policy with the real names of what its hide rules name by symbolic links: this is what the
  // judge has to ask, because it is told real names.
  policy::Policy effective;
  std::vector<std::string> notices;
};

// The ids that a bind below the home directory or a writable one appears with: the owner on disk is
// the sandbox's own id inside. Only root can map.
struct IdShift {
  std::uint32_t sandbox_uid = 0;
  std::uint32_t sandbox_gid = 0;
};

struct ViewInputs {
  const policy::Policy& policy;
  const policy::PathFacts& facts;
  std::string home;  // absolute, or "" when there is none
  std::optional<IdShift> ids;
};

// Whether the rule's path leads through a symbolic link in a place that the sandbox can write to: a
// link that an earlier run could have made would show what it pleases. Such a rule isn't followed.
bool LeadsThroughWritable(const policy::Policy& policy, const policy::PathFact& fact);
std::string PlantedNotice(const policy::PathFact& fact);

// kInvalidArgument for rules that this level can't keep: paths in /dev or /proc.
Result<View> BuildView(const ViewInputs& inputs);

}  // namespace soma::plan

#endif  // SOMA_PLAN_VIEW_H_
