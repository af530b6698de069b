// SPDX-License-Identifier: Apache-2.0
// EntryInfo of a path, as E2B shows files: a symlink has the type, mode and size of its target.
#ifndef SOMA_GUEST_ENTRY_H_
#define SOMA_GUEST_ENTRY_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guest/accounts.h"
#include "sys/fd.h"
#include "wire/reply.h"

namespace soma::guest {

// The prefix of the extended attributes that hold a file's metadata.
inline constexpr std::string_view kMetadataPrefix = "user.e2b.";

// `path` is absolute and clean. kNotFound if nothing is there.
Result<wire::EntryInfo> DescribeEntry(const Accounts& accounts, const std::string& path);

// Replaces all metadata of an open file.
Status ReplaceMetadata(const Fd& file, const std::vector<wire::KeyValue>& metadata);

}  // namespace soma::guest

#endif  // SOMA_GUEST_ENTRY_H_
