// SPDX-License-Identifier: Apache-2.0
// Decoding what the halves of a foreground run say is total, and what decodes has one encoding.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "sandbox/foreground_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const soma::ByteView input(data, size);
  if (const auto message = soma::sandbox::DecodeToCaller(input)) {
    SOMA_CHECK(std::ranges::equal(soma::sandbox::Encode(*message), input));
  }
  if (const auto message = soma::sandbox::DecodeToAttendant(input)) {
    SOMA_CHECK(std::ranges::equal(soma::sandbox::Encode(*message), input));
  }
  return 0;
}
