// SPDX-License-Identifier: Apache-2.0
// An envelope that is accepted is the one that writing its message gives.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "parse/connect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto body = soma::AsText({data, size});
  const auto message = soma::parse::ReadOnlyEnvelope(body);
  if (message) SOMA_CHECK(soma::parse::WriteEnvelope(0, *message) == body);
  return 0;
}
