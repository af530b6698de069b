// SPDX-License-Identifier: Apache-2.0
// Opening what lies in a journal's directory. Where root runs a service the directory belongs to
// the service's user (sys/service_user.h) and root's own programs write there too: so no link is
// followed below it, nothing but files and folders is opened, and what root makes is given to the
// directory's owner.
#ifndef SOMA_AUDIT_OPEN_IN_H_
#define SOMA_AUDIT_OPEN_IN_H_

#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::audit {

// `path` lies below `directory` (audit/layout.h). open(2) with mode 0600; O_NOFOLLOW and O_CLOEXEC
// are added. kFailedPrecondition for what is neither a regular file nor a directory.
Result<Fd> OpenIn(const std::string& directory, const std::string& path, int flags);

// Makes the folder `path` and its parents up to `directory`, which exists. An existing one is fine.
Status MakeFolderIn(const std::string& directory, const std::string& path);

}  // namespace soma::audit

#endif  // SOMA_AUDIT_OPEN_IN_H_
