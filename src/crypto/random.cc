// SPDX-License-Identifier: Apache-2.0
#include "crypto/random.h"

#include <sys/random.h>

#include <cerrno>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace soma::crypto {

void KernelRandom::Fill(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    // getrandom(2) without flags has no other failure than a wrong address or a kernel older than
    // 3.17; going on without randomness is never right.
    SOMA_CHECK(got > 0);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::string RandomHex(Random& random, std::size_t bytes) {
  std::vector<std::uint8_t> raw(bytes);
  random.Fill(raw);
  return Hex(raw);
}

}  // namespace soma::crypto
