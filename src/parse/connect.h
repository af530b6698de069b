// SPDX-License-Identifier: Apache-2.0
// The Connect protocol's framing (https://connectrpc.com/docs/protocol, "Streaming-Request"): an
// envelope is a flag byte, a 32-bit big-endian length and a message. I/O-free, untrusted input.
#ifndef SOMA_PARSE_CONNECT_H_
#define SOMA_PARSE_CONNECT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"

namespace soma::parse {

inline constexpr std::size_t kConnectHeaderSize = 5;
inline constexpr std::uint8_t kConnectCompressed = 1;
inline constexpr std::uint8_t kConnectEndStream = 2;

// The single message of a server-streaming call's request body. A compressed envelope, a second
// one, or bytes left over are kInvalidArgument.
Result<std::string_view> ReadOnlyEnvelope(std::string_view body);

std::string WriteEnvelope(std::uint8_t flags, std::string_view message);

// The protocol's name and HTTP status of an error ("Error codes" of the protocol).
struct ConnectCode {
  std::string_view name;
  int status;
};
ConnectCode ConnectCodeFor(Errc code);

}  // namespace soma::parse

#endif  // SOMA_PARSE_CONNECT_H_
