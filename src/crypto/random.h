// SPDX-License-Identifier: Apache-2.0
// KernelRandom: bytes fit for keys and tokens, straight from getrandom(2); blocks until the
// kernel's pool is ready (early boot only). `main` makes one and hands it down.
#ifndef SOMA_CRYPTO_RANDOM_H_
#define SOMA_CRYPTO_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"

namespace soma::crypto {

class KernelRandom final : public Random {
 public:
  void Fill(std::span<std::uint8_t> out) override;
};

// `bytes` random bytes as lower-case hexadecimal (2 * bytes digits): ids, tokens, keys.
std::string RandomHex(Random& random, std::size_t bytes);

}  // namespace soma::crypto

#endif  // SOMA_CRYPTO_RANDOM_H_
