// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), and comparison in constant time. By libsodium, which needs no
// initialisation for these calls.
//
// SHA-256 and not BLAKE2b, because a reader of the journal can then check it with sha256sum.
#ifndef SOMA_CRYPTO_HASH_H_
#define SOMA_CRYPTO_HASH_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace soma::crypto {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(ByteView bytes);
inline Digest Sha256(std::string_view text) { return Sha256(AsBytes(text)); }

// For inputs that come in pieces: files, layers.
class Sha256Stream {
 public:
  Sha256Stream();
  void Update(ByteView bytes);
  // Ends the stream; call once.
  Digest Finish();

 private:
  // Room for crypto_hash_sha256_state (104 bytes in libsodium 1.0.18); hash.cc asserts it.
  alignas(16) std::array<std::uint8_t, 128> state_;
};

// HMAC-SHA-256 (RFC 2104) with a key of any length.
Digest HmacSha256(ByteView key, ByteView message);

// True when equal; the time depends on the sizes only. Different sizes are unequal at once.
bool EqualInConstantTime(ByteView a, ByteView b);

}  // namespace soma::crypto

#endif  // SOMA_CRYPTO_HASH_H_
