// SPDX-License-Identifier: Apache-2.0
// E2B's EntryInfo as JSON. Pure; the input is the guest's.
#ifndef SOMA_API_ENTRY_SHAPE_H_
#define SOMA_API_ENTRY_SHAPE_H_

#include <cstdint>
#include <string>

#include "parse/json.h"
#include "sandbox/guest_calls.h"

namespace soma::api {

parse::Json EntryShape(const wire::EntryInfo& entry);
// Go's spelling of a mode: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx".
std::string PermissionText(const wire::EntryInfo& entry);
// What an upload answers: exactly these members, since tests of the SDKs compare deeply.
parse::Json WrittenShape(const wire::EntryInfo& entry);

}  // namespace soma::api

#endif  // SOMA_API_ENTRY_SHAPE_H_
