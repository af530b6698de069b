// SPDX-License-Identifier: Apache-2.0
// What an HTTP request line and the Host header name: path segments, query, port and sandbox.
// I/O-free, untrusted input.
#ifndef SOMA_PARSE_HTTP_TARGET_H_
#define SOMA_PARSE_HTTP_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace soma::parse {

// Percent-decodes; a broken escape is nullopt. `plus_is_space` for query strings.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);

using QueryPairs = std::vector<std::pair<std::string, std::string>>;

// "a=b&c=d" decoded, at most 64 pairs. A broken escape is kInvalidArgument.
Result<QueryPairs> ParseQuery(std::string_view text);

struct HttpTarget {
  std::string path;  // as sent, still encoded; begins with '/'
  QueryPairs query;

  const std::string* Find(std::string_view name) const;
};

// Origin form only ("/path?query").
Result<HttpTarget> ParseTarget(std::string_view target);

// Path segments between slashes, each decoded; a trailing slash gives no empty segment.
// kInvalidArgument for a broken escape or a NUL.
Result<std::vector<std::string>> PathSegments(std::string_view path);

// E2B encodes metadata filters three times (research: the query value, once decoded, is a query
// string of parts that are encoded twice).
Result<QueryPairs> ParseMetadataFilter(std::string_view decoded_query_value);

struct HostPort {
  std::string host;  // lower case, without brackets and port
  std::optional<std::uint16_t> port;
};
std::optional<HostPort> ParseHost(std::string_view host_header);

// Whether the host is this machine itself: "localhost", a name below it, 127.0.0.0/8, ::1.
bool IsLoopbackHost(std::string_view host);
// Whether it is an IP address in text form.
bool IsIpAddress(std::string_view host);

// "<port>-<sandbox>.<domain>": what a request to a port inside names by its Host header.
struct SandboxPort {
  std::string sandbox_id;  // [a-z0-9]{1,32}
  std::uint16_t port = 0;
};
std::optional<SandboxPort> ParseSandboxHost(std::string_view host);
// From the routing headers' values.
std::optional<SandboxPort> ParseSandboxHeaders(std::string_view id, std::string_view port);

// [a-z0-9]{1,32}
bool IsSandboxId(std::string_view text);
// "id-clientid" of older SDKs gives "id".
std::string_view CutClientId(std::string_view text);

}  // namespace soma::parse

#endif  // SOMA_PARSE_HTTP_TARGET_H_
