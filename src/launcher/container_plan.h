// SPDX-License-Identifier: Apache-2.0
// The walls of a container, from what the launcher itself decided: pure, no message reaches it but
// by a task profile and limits. The root comes as a mount, the agent as a program, both by
// descriptor.
#ifndef SOMA_LAUNCHER_CONTAINER_PLAN_H_
#define SOMA_LAUNCHER_CONTAINER_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "control/messages.h"
#include "launcher/ids.h"
#include "walls/plan.h"

namespace soma::launcher {

// The slots of the plan: LaunchOptions::descriptors in this order.
inline constexpr std::uint32_t kRootSlot = 0;   // detached overlay mount
inline constexpr std::uint32_t kGuestSlot = 1;  // soma-guest
inline constexpr std::uint32_t kWireSlot = 2;   // the guest's end of the cable
inline constexpr std::uint32_t kNullSlot = 3;   // /dev/null, for standard input, output, error
inline constexpr std::uint32_t kContainerSlots = 4;

// Two user namespaces: the outer one owns the network, so that root inside can neither change its
// addresses nor flush the rules that catch its connects; the inner one owns everything else. Pid 1
// is the guest agent, as root of the inner namespace with the capabilities that starting tasks as
// any user needs. `rooted` leaves setuid programs working.
walls::WallPlan ContainerPlan(const SlotIds& ids, control::TaskProfile profile,
                              const control::Limits& limits, std::string_view host_name);

// What an ordinary user has: one id, no disk or memory of its own size, no freezer.
struct RootlessPlace {
  std::uint32_t uid = 0;  // the caller's own: root inside
  std::uint32_t gid = 0;
  std::string template_tree;  // an unpacked template
  std::string upper;
  std::string work;
};

// The same walls with one user namespace, in which only root exists, on a plain directory. Limits
// are rlimits: processes, the size of one file, the data of one process. Slots as above; kRootSlot
// is unused.
walls::WallPlan RootlessPlan(const RootlessPlace& place, const control::Limits& limits,
                             std::string_view host_name);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_CONTAINER_PLAN_H_
