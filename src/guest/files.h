// SPDX-License-Identifier: Apache-2.0
// File operations that answer at once: make a directory, move, remove, and making parents. The
// agent acts as root; what it creates belongs to `user`. All paths are absolute and clean.
//
// A task may change the tree meanwhile. Ownership is therefore only given to a directory or file
// that was opened without following a link, never by path.
#ifndef SOMA_GUEST_FILES_H_
#define SOMA_GUEST_FILES_H_

#include <string>

#include "base/result.h"
#include "guest/accounts.h"
#include "sys/fd.h"

namespace soma::guest {

// Gives an open file or directory to the user; nothing where the agent isn't root.
Status GiveTo(const User& user, const Fd& file);

// Makes `path` and its missing parents, 0755, owned by `user`. An existing directory is fine.
// kInvalidArgument where a file is in the way.
Status MakeDirectories(const User& user, const std::string& path);

// kAlreadyExists for an existing directory, kInvalidArgument for an existing file.
Status MakeDirectory(const User& user, const std::string& path);

// Renames, with missing parents of the destination made. kNotFound without a source.
Status MoveEntry(const User& user, const std::string& source, const std::string& destination);

// The whole tree, without following links; a missing one is fine.
Status RemoveEntry(const std::string& path);

}  // namespace soma::guest

#endif  // SOMA_GUEST_FILES_H_
