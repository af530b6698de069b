// SPDX-License-Identifier: Apache-2.0
// Base64, standard alphabet (RFC 4648 section 4). Pure, untrusted input.
#ifndef SOMA_PARSE_BASE64_H_
#define SOMA_PARSE_BASE64_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace soma::parse {

std::string Base64Encode(ByteView bytes);
// Padding may be missing; anything else that an encoder would not have written is nullopt.
std::optional<Bytes> Base64Decode(std::string_view text);

}  // namespace soma::parse

#endif  // SOMA_PARSE_BASE64_H_
