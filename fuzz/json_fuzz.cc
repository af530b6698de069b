// SPDX-License-Identifier: Apache-2.0
// Whatever ParseJson accepts must survive being written and read again, unchanged.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "parse/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = soma::parse::ParseJson(soma::AsText({data, size}));
  if (!parsed) return 0;
  const std::string text = parsed->Write();
  const auto again = soma::parse::ParseJson(text);
  SOMA_CHECK(again.has_value());
  SOMA_CHECK(again->Write() == text);
  return 0;
}
