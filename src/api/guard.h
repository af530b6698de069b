// SPDX-License-Identifier: Apache-2.0
// Whether a request may speak to the control and envd faces at all, by what a browser cannot forge:
// its Host and its Origin. Pure, untrusted input.
#ifndef SOMA_API_GUARD_H_
#define SOMA_API_GUARD_H_

#include <string>
#include <string_view>
#include <vector>

#include "aio/http.h"
#include "base/result.h"

namespace soma::api {

struct GuardLists {
  std::vector<std::string> hosts;    // each with everything below it
  std::vector<std::string> origins;  // exact
};

// kPermissionDenied, naming the header and the option that would allow it. A missing Host is
// refused; a missing Origin is what every program that is no browser sends.
Status CheckHostAndOrigin(const aio::HttpHeaders& headers, const GuardLists& lists);

}  // namespace soma::api

#endif  // SOMA_API_GUARD_H_
