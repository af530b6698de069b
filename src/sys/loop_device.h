// SPDX-License-Identifier: Apache-2.0
// LoopDevice: a block device over a file, which disappears by itself with its last user.
// Root only. Source: loop(4), linux/loop.h.
#ifndef SOMA_SYS_LOOP_DEVICE_H_
#define SOMA_SYS_LOOP_DEVICE_H_

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sys {

enum class LoopMode { kReadOnly, kReadWrite };

// Auto-clear: when `device` and every mount of it are gone, the kernel frees the device, however
// our own processes ended. Direct I/O where the file system has it, or every page is cached twice.
struct LoopDevice {
  Fd device;
  std::string path;  // "/dev/loop7"
};

// `file` is open for what `mode` says; the caller may close it (and unlink its name) afterwards.
// kUnavailable when no device could be had in 32 tries against other users of loop devices.
Result<LoopDevice> AttachLoop(int file, LoopMode mode);

}  // namespace soma::sys

#endif  // SOMA_SYS_LOOP_DEVICE_H_
