// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "aio/http.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "parse/http_target.h"

namespace soma::api {
namespace {

bool IsAtOrBelow(std::string_view host, std::string_view domain) {
  if (host == domain) return true;
  return host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.';
}

// A page that rebinds its own name to 127.0.0.1 still sends that name; an address can't be rebound.
bool HostIsOurs(std::string_view host, const GuardLists& lists) {
  if (parse::IsLoopbackHost(host) || parse::IsIpAddress(host)) return true;
  return std::ranges::any_of(lists.hosts, [host](const std::string& ours) {
    return !ours.empty() && IsAtOrBelow(host, ours);
  });
}

}  // namespace

Status CheckHostAndOrigin(const aio::HttpHeaders& headers, const GuardLists& lists) {
  const std::string_view host_header = headers.Get("host");
  const auto host = parse::ParseHost(host_header);
  if (!host || !HostIsOurs(host->host, lists)) {
    return Fail(Errc::kPermissionDenied, StrCat("the Host \"", EscapeForTerminal(host_header),
                                                "\" is not one of this server's; --host adds one"));
  }
  const std::string* origin = headers.Find("origin");
  if (origin != nullptr && std::ranges::find(lists.origins, *origin) == lists.origins.end()) {
    return Fail(Errc::kPermissionDenied, StrCat("the Origin \"", EscapeForTerminal(*origin),
                                                "\" may not call this server; --origin adds one"));
  }
  return {};
}

}  // namespace soma::api
