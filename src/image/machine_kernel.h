// SPDX-License-Identifier: Apache-2.0
// The kernel of virtual machines: Debian's own, downloaded and unpacked, never installed, and our
// initramfs beside it.
#ifndef SOMA_IMAGE_MACHINE_KERNEL_H_
#define SOMA_IMAGE_MACHINE_KERNEL_H_

#include <string>

#include "base/result.h"

namespace soma::image {

struct KernelOptions {
  std::string
      directory;  // gets `vmlinux`, `initrd` and what fetch-kernel leaves; made if it is missing
  std::string scripts;   // where fetch-kernel and make-initrd lie
  std::string programs;  // where soma-vm-init and soma-guest lie: they go into the initrd
};

// Quick when the kernel is current; the initrd is always written anew (by rename), because our own
// programs may have changed. Running machines keep the files that they opened.
Status InstallMachineKernel(const KernelOptions& options);

}  // namespace soma::image

#endif  // SOMA_IMAGE_MACHINE_KERNEL_H_
