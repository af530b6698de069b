// SPDX-License-Identifier: Apache-2.0
// Decode of a WallPlan from untrusted bytes: whatever it accepts is valid, prints, and encodes to
// itself.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "walls/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = soma::walls::Decode({data, size});
  if (!plan) return 0;
  SOMA_CHECK(soma::walls::Validate(*plan).has_value());
  SOMA_CHECK(!soma::walls::Describe(*plan).empty());
  const auto again = soma::walls::Decode(soma::walls::Encode(*plan));
  SOMA_CHECK(again.has_value() && *again == *plan);
  return 0;
}
