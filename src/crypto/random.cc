// SPDX-License-Identifier: Apache-2.0
#include "crypto/random.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/text.h"

namespace soma::crypto {

std::string RandomHex(Random& random, std::size_t bytes) {
  std::vector<std::uint8_t> raw(bytes);
  random.Fill(raw);
  return Hex(raw);
}

}  // namespace soma::crypto
