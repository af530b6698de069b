// SPDX-License-Identifier: Apache-2.0
#include "crypto/hash.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>

#include <array>
#include <cstdint>
#include <new>

#include "base/bytes.h"

namespace soma::crypto {

static_assert(sizeof(crypto_hash_sha256_state) <= 128);
static_assert(crypto_hash_sha256_BYTES == sizeof(Digest));

namespace {
crypto_hash_sha256_state* StateIn(std::array<std::uint8_t, 128>& room) {
  return std::launder(reinterpret_cast<crypto_hash_sha256_state*>(room.data()));
}
}  // namespace

Digest Sha256(ByteView bytes) {
  Digest digest{};
  crypto_hash_sha256(digest.data(), bytes.data(), bytes.size());
  return digest;
}

Sha256Stream::Sha256Stream() : state_{} {
  crypto_hash_sha256_init(new (state_.data()) crypto_hash_sha256_state);
}

void Sha256Stream::Update(ByteView bytes) {
  crypto_hash_sha256_update(StateIn(state_), bytes.data(), bytes.size());
}

Digest Sha256Stream::Finish() {
  Digest digest{};
  crypto_hash_sha256_final(StateIn(state_), digest.data());
  return digest;
}

Digest HmacSha256(ByteView key, ByteView message) {
  Digest digest{};
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key.data(), key.size());
  crypto_auth_hmacsha256_update(&state, message.data(), message.size());
  crypto_auth_hmacsha256_final(&state, digest.data());
  return digest;
}

bool EqualInConstantTime(ByteView a, ByteView b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace soma::crypto
