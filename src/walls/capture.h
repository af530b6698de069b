// SPDX-License-Identifier: Apache-2.0
// The network capture: makes every connect inside the calling process's network namespace arrive at
// sockets that are handed out (design: egress). Internal; between fork and exec, with CAP_NET_ADMIN
// there.
#ifndef SOMA_WALLS_CAPTURE_H_
#define SOMA_WALLS_CAPTURE_H_

namespace soma::walls {

// Fills `sockets` in the order of CaptureSockets. 0 or an errno.
int OpenCapture(int (&sockets)[4]) noexcept;

}  // namespace soma::walls

#endif  // SOMA_WALLS_CAPTURE_H_
