// SPDX-License-Identifier: Apache-2.0
#include "launcher/slots.h"

#include <signal.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "control/order.h"
#include "launcher/cgroup_tree.h"
#include "launcher/ids.h"
#include "sys/child_process.h"
#include "sys/fd.h"
#include "sys/message_socket.h"
#include "sys/process.h"
#include "sys/user_namespace.h"

namespace soma::launcher {
namespace {

// Nothing; in a test build which wall is to be left out.
std::vector<std::string> MonitorEnvironment() {
#if SOMA_TEST_SWITCHES
  if (const char* without = std::getenv("SOMA_TEST_WITHOUT")) {
    return {std::string("SOMA_TEST_WITHOUT=") + without};
  }
#endif
  return {};
}

}  // namespace

Result<ReadySlot> Slots::Make() {
  std::uint32_t slot = 0;
  while (used_.contains(slot)) ++slot;
  if (slot >= options_.slots_max || slot >= kSlotsMax) {
    return Fail(Errc::kResourceExhausted, "as many sandboxes run as this launcher allows");
  }
  const SlotIds ids = IdsOfSlot(slot);
  if (options_.own_ids && !id_namespaces_.contains(slot)) {
    SOMA_ASSIGN(Fd id_namespace, sys::NewUserNamespace(ids.first, kRangeSize));
    id_namespaces_.emplace(slot, std::move(id_namespace));
  }
  SOMA_ASSIGN(SlotCgroup cgroup, cgroups_.MakeSlot(slot));
  SOMA_ASSIGN(sys::SocketPair link, sys::MakeSocketPair(SOCK_SEQPACKET | SOCK_NONBLOCK));
  auto monitor = sys::StartProgram(
      {.path = options_.monitor_program,
       .arguments = {"soma-monitor"},
       .environment = MonitorEnvironment(),
       .descriptors = {{.fd = link.second.get(), .inside = control::kMonitorLinkFd}}});
  if (!monitor) {
    (void)cgroup.Remove();
    return std::unexpected(std::move(monitor).error());
  }
  auto entered = cgroup.Enter(monitor->pid());
  auto identity = sys::IdentityOf(monitor->pid());
  if (!entered || !identity) {
    monitor->Signal(SIGKILL);
    (void)monitor->Wait();
    (void)cgroup.Remove();
    if (!entered) return std::unexpected(std::move(entered).error());
    return std::unexpected(std::move(identity).error());
  }
  used_.insert(slot);
  return ReadySlot{.slot = slot,
                   .ids = ids,
                   .cgroup = std::move(cgroup),
                   .id_namespace = options_.own_ids ? id_namespaces_.at(slot).get() : -1,
                   .monitor = *std::move(monitor),
                   .monitor_identity = *identity,
                   .link = std::move(link.first)};
}

Result<ReadySlot> Slots::Take() {
  if (ready_.empty()) return Make();
  ReadySlot slot = std::move(ready_.back());
  ready_.pop_back();
  return slot;
}

Result<bool> Slots::FillOne() {
  if (ready_.size() >= options_.ready_wanted || used_.size() >= options_.slots_max) return false;
  SOMA_ASSIGN(ReadySlot slot, Make());
  ready_.push_back(std::move(slot));
  return true;
}

}  // namespace soma::launcher
