// SPDX-License-Identifier: Apache-2.0
// Programs that a build calls: mmdebstrap, npm, mkfs.erofs, through the recipes.
//
// They inherit the caller's environment (a proxy, a mirror's certificate), get an empty standard
// input, and write their progress to the caller's standard error. They die when the builder does,
// however it ends: the kernel signals them.
#ifndef SOMA_IMAGE_PROGRAM_H_
#define SOMA_IMAGE_PROGRAM_H_

#include <string>
#include <vector>

#include "base/result.h"

namespace soma::image {

// Blocks until it ends. Its standard output is returned, at most 1 MiB of it (more is kOutOfRange).
// kInternal when it fails, naming it and its exit status. `arguments[0]` is a path or found by
// PATH.
Result<std::string> RunProgram(const std::vector<std::string>& arguments);

}  // namespace soma::image

#endif  // SOMA_IMAGE_PROGRAM_H_
