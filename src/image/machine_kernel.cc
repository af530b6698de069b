// SPDX-License-Identifier: Apache-2.0
#include "image/machine_kernel.h"

#include "base/result.h"
#include "image/program.h"
#include "sys/plain_file.h"

namespace soma::image {

Status InstallMachineKernel(const KernelOptions& options) {
  const auto parent = options.directory.substr(0, options.directory.rfind('/'));
  SOMA_TRY(sys::MakeDirectories(parent, 0700));
  SOMA_TRY(RunProgram({options.scripts + "/fetch-kernel", options.directory}));
  SOMA_TRY(RunProgram({options.scripts + "/make-initrd", options.directory, options.programs,
                       options.directory + "/initrd"}));
  return {};
}

}  // namespace soma::image
