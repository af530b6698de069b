// SPDX-License-Identifier: Apache-2.0
// Removing what a sandbox wrote, as an ordinary user: directories without permission, of any depth
// and number, made to be hard to remove.
#ifndef SOMA_LAUNCHER_REMOVE_TREE_H_
#define SOMA_LAUNCHER_REMOVE_TREE_H_

#include <string>

namespace soma::launcher {

// Removes the directory at `path` and all below it, without following symlinks, without recursion.
// What can't be removed (there should be nothing) stays for the next sweep.
void RemoveTree(const std::string& path);

}  // namespace soma::launcher

#endif  // SOMA_LAUNCHER_REMOVE_TREE_H_
