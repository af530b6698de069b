// SPDX-License-Identifier: Apache-2.0
// The files that tell a sandbox its own name and where names are looked up.
#ifndef SOMA_LAUNCHER_SANDBOX_NAMES_H_
#define SOMA_LAUNCHER_SANDBOX_NAMES_H_

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::launcher {

// Writes etc/hostname, etc/hosts and etc/resolv.conf into the fresh directory "upper" below
// `directory`, owned by `uid` and `gid`: ordinary files that whoever is root inside may replace.
// Nothing of a sandbox has been there before, so no name can lead astray.
Status WriteSandboxNames(const Fd& directory, std::uint32_t uid, std::uint32_t gid,
                         std::string_view host_name);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_SANDBOX_NAMES_H_
