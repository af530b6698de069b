// SPDX-License-Identifier: Apache-2.0
// The smallest erofs image: one empty directory. For trying whether an image can be mounted.
#ifndef SOMA_PROBE_EROFS_IMAGE_H_
#define SOMA_PROBE_EROFS_IMAGE_H_

#include <string>

namespace soma::probe {

std::string ErofsImage();

}  // namespace soma::probe

#endif  // SOMA_PROBE_EROFS_IMAGE_H_
