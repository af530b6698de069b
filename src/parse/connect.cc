// SPDX-License-Identifier: Apache-2.0
#include "parse/connect.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"

namespace soma::parse {

Result<std::string_view> ReadOnlyEnvelope(std::string_view body) {
  if (body.size() < kConnectHeaderSize) {
    return Fail(Errc::kInvalidArgument, "the body holds no whole envelope");
  }
  const auto flags = static_cast<std::uint8_t>(body[0]);
  std::size_t length = 0;
  for (std::size_t i = 1; i < kConnectHeaderSize; ++i) {
    length = (length << 8) | static_cast<std::uint8_t>(body[i]);
  }
  body.remove_prefix(kConnectHeaderSize);
  if (flags == kConnectCompressed) {
    return Fail(Errc::kInvalidArgument, "compressed envelopes are not supported");
  }
  if (flags != 0) return Fail(Errc::kInvalidArgument, "the envelope has unknown flags");
  if (body.size() != length) {
    return Fail(Errc::kInvalidArgument, "the envelope's length is not that of the body");
  }
  return body;
}

std::string WriteEnvelope(std::uint8_t flags, std::string_view message) {
  std::string out;
  out.reserve(kConnectHeaderSize + message.size());
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>((message.size() >> shift) & 0xFF);
  }
  out += message;
  return out;
}

ConnectCode ConnectCodeFor(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return {"invalid_argument", 400};
    case Errc::kNotFound:
      return {"not_found", 404};
    case Errc::kAlreadyExists:
      return {"already_exists", 409};
    case Errc::kPermissionDenied:
      return {"permission_denied", 403};
    case Errc::kUnauthenticated:
      return {"unauthenticated", 401};
    case Errc::kResourceExhausted:
      return {"resource_exhausted", 429};
    case Errc::kFailedPrecondition:
      return {"failed_precondition", 400};
    case Errc::kUnavailable:
      return {"unavailable", 503};
    case Errc::kDeadlineExceeded:
      return {"deadline_exceeded", 504};
    case Errc::kCancelled:
      return {"canceled", 499};
    case Errc::kUnimplemented:
      return {"unimplemented", 501};
    case Errc::kDataLoss:
      return {"data_loss", 500};
    case Errc::kOutOfRange:
      return {"out_of_range", 400};
    case Errc::kInternal:
      return {"internal", 500};
  }
  return {"unknown", 500};
}

}  // namespace soma::parse
