// SPDX-License-Identifier: Apache-2.0
// Names and secrets made of random bytes.
#ifndef SOMA_CRYPTO_RANDOM_H_
#define SOMA_CRYPTO_RANDOM_H_

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace soma::crypto {

// `bytes` random bytes as lower-case hexadecimal (2 * bytes digits): ids, tokens, keys.
std::string RandomHex(Random& random, std::size_t bytes);

}  // namespace soma::crypto

#endif  // SOMA_CRYPTO_RANDOM_H_
