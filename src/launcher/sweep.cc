// SPDX-License-Identifier: Apache-2.0
// What an earlier worker left: living sandboxes are adopted, everything else is removed.
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/cgroup_tree.h"
#include "launcher/log.h"
#include "launcher/record.h"
#include "launcher/worker.h"
#include "launcher/worker_state.h"
#include "sys/child_process.h"
#include "sys/directory.h"
#include "sys/packet_listener.h"
#include "sys/process.h"

namespace soma::launcher {

void Worker::Adopt(const Record& record) {
  auto sandbox = std::make_unique<Sandbox>();
  sandbox->status.sandbox = record.sandbox;
  sandbox->status.level = record.level;
  sandbox->status.state = control::SandboxState::kRunning;
  sandbox->slot = record.slot;
  sandbox->cgroup = cgroups_.SlotAt(record.slot);
  slots_.MarkUsed(record.slot);
  auto monitor = sys::OpenProcess(record.monitor);
  auto link = sys::ConnectPackets(options_.paths.MonitorSocket(record.sandbox));
  const bool alive = monitor.has_value() && link.has_value();
  if (monitor) sandbox->monitor = *std::move(monitor);
  if (alive) sandbox->link = *std::move(link);
  Log(StrCat(alive ? "adopted " : "swept ", record.sandbox.text()));
  Sandbox& adopted = *sandbox;
  sandboxes_[record.sandbox] = std::move(sandbox);
  if (alive) {
    // It may have been started so shortly before the end of the earlier worker that it still sits
    // in its sandbox's cgroup.
    to_move_home_.push_back(record.sandbox);
  } else {
    adopted.monitor.Signal(SIGKILL);
    OnMonitorGone(adopted);
  }
}

Status Worker::Sweep() {
  SOMA_ASSIGN(const auto records, LoadRecords(options_.paths));
  std::set<std::uint32_t> recorded;
  for (const Record& record : records) {
    recorded.insert(record.slot);
    Adopt(record);
  }
  // Cgroups without a record: waiting monitors of an earlier worker, or a start that got no
  // further.
  for (const std::uint32_t slot : cgroups_.Existing()) {
    if (recorded.contains(slot)) continue;
    SlotCgroup cgroup = cgroups_.SlotAt(slot);
    cgroup.Kill();
    slots_.MarkUsed(slot);
    draining_.push_back({.cgroup = std::move(cgroup),
                         .slot = slot,
                         .monitor = sys::Process(),
                         .sandbox = {},
                         .since = clock_.MonotonicNow(),
                         .monitor_gone = true});
  }
  if (IsRootless()) SweepTrees();
  SOMA_ASSIGN(const sys::Dir monitors, sys::Dir::OpenAbsolute(options_.paths.Monitors()));
  SOMA_ASSIGN(const auto sockets, monitors.List());
  for (const std::string& name : sockets) {
    std::string_view stem = name;
    if (stem.ends_with(".sock")) stem.remove_suffix(std::string_view(".sock").size());
    const auto id = control::SandboxId::Create(stem);
    if (id && sandboxes_.contains(*id)) continue;
    unlink(StrCat(options_.paths.Monitors(), "/", name).c_str());
  }
  return {};
}

}  // namespace soma::launcher
