// SPDX-License-Identifier: Apache-2.0
// How a virtual machine begins: the same order to the same monitor, with QEMU's jail for a plan.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "control/messages.h"
#include "launcher/blueprint.h"
#include "launcher/slots.h"
#include "launcher/vm/machine.h"
#include "launcher/vm/tsc.h"
#include "launcher/vm/vm_plan.h"
#include "launcher/worker.h"
#include "sys/fd.h"
#include "sys/plain_file.h"

namespace soma::launcher {
namespace {

// QEMU's threads are few, but the guest's number of processes says nothing about them.
constexpr std::uint32_t kQemuThreads = 64;

}  // namespace

bool Worker::CanEmulate() const {
  const std::string kernel = options_.paths.Kernel();
  return access((kernel + "/vmlinux").c_str(), R_OK) == 0 &&
         access((kernel + "/initrd").c_str(), R_OK) == 0 &&
         access("/usr/bin/qemu-system-x86_64", X_OK) == 0;
}

Result<Blueprint> Worker::MachineBlueprint(const ReadySlot& slot, const control::Request& request,
                                           Fd guest_wire) {
  if (IsRootless()) {
    return Fail(Errc::kUnimplemented, "virtual machines need a launcher that runs as root");
  }
  if (request.level != control::Level::kEmulated) {
    return Fail(Errc::kUnimplemented, "microvm needs KVM that was proven here; try emulated");
  }
  if (!CanEmulate()) {
    return Fail(Errc::kFailedPrecondition,
                "no kernel for virtual machines, or no QEMU: run soma template build base");
  }
  // About 20 ms, once.
  if (tsc_khz_ == 0) {
    SOMA_ASSIGN(tsc_khz_, MeasureTscKhz());
  }
  const std::string image =
      StrCat(options_.paths.Templates(), "/", request.template_id.text(), "/root.erofs");
  auto root = sys::OpenFile(image, O_RDONLY | O_NOFOLLOW);
  if (!root) {
    return Fail(Errc::kNotFound,
                StrCat("there is no template ", request.template_id.text(), " with an image"));
  }
  SOMA_ASSIGN(Fd scratch, uppers_.TakeImage({.bytes = request.limits.disk_bytes,
                                             .inodes = request.limits.inodes}));
  Blueprint blueprint;
  SOMA_ASSIGN(blueprint.plan, VmPlan({.accelerator = Accelerator::kTcg,
                                      .memory_bytes = request.limits.memory_bytes,
                                      .scratch_bytes = request.limits.disk_bytes,
                                      .tsc_khz = tsc_khz_,
                                      .kernel_directory = options_.paths.Kernel(),
                                      .host_root_id = slot.ids.outer_root,
                                      .host_qemu_id = slot.ids.first}));
  blueprint.limits = request.limits;
  blueprint.limits.memory_bytes += kVmMonitorBytes;
  blueprint.limits.pids = std::max(blueprint.limits.pids, kQemuThreads);
  // The order of vm_plan.h.
  blueprint.AddOwned(*std::move(root));
  blueprint.AddOwned(std::move(scratch));
  blueprint.AddOwned(std::move(guest_wire));
  blueprint.AddBorrowed(null_);
  blueprint.AddBorrowed(null_);
  return blueprint;
}

}  // namespace soma::launcher
