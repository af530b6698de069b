// SPDX-License-Identifier: Apache-2.0
// The task's own /dev. Internal; between fork and exec.
#ifndef SOMA_WALLS_DEVICE_TREE_H_
#define SOMA_WALLS_DEVICE_TREE_H_

#include <cstdint>

namespace soma::walls {

// Fills the empty, attached tmpfs `root`: null, zero, full, random, urandom and tty bound from the
// host's /dev, an own pts and ptmx, fd and std{in,out,err}, and a shm of `shm_bytes_max` (0: the
// kernel's default). 0 or an errno.
int FillDeviceTree(int root, std::uint64_t shm_bytes_max) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_DEVICE_TREE_H_
