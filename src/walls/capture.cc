// SPDX-License-Identifier: Apache-2.0
#include "walls/capture.h"

#include <cerrno>

namespace soma::walls {

int OpenCapture(int (&sockets)[4]) noexcept {
  (void)sockets;
  return EOPNOTSUPP;
}

}  // namespace soma::walls
