// SPDX-License-Identifier: Apache-2.0
// Bytes and bounded little-endian encoding, shared by every fixed or binary format of ours (wire,
// control, journal).
//
// ByteReader never reads past its span: after the first failure every read gives zero and ok() is
// false, so a decoder checks once at its end. ByteWriter appends. Both are plain values without
// I/O.
#ifndef SOMA_BASE_BYTES_H_
#define SOMA_BASE_BYTES_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace soma {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& out) : out_(out) {}

  template <std::unsigned_integral T>
  void Put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void PutRaw(ByteView bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  // A 32-bit length, then the bytes. The caller guarantees a size below 4 GiB.
  void PutString(std::string_view text) {
    Put(static_cast<std::uint32_t>(text.size()));
    PutRaw(AsBytes(text));
  }

 private:
  Bytes& out_;
};

class ByteReader {
 public:
  explicit ByteReader(ByteView in) : in_(in) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && in_.empty(); }
  std::size_t remaining() const { return in_.size(); }

  template <std::unsigned_integral T>
  T Get() {
    const ByteView raw = GetRaw(sizeof(T));
    T value = 0;
    if (!ok_) return value;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(value | static_cast<T>(static_cast<T>(raw[i]) << (8 * i)));
    }
    return value;
  }
  // The view lives as long as the reader's input.
  ByteView GetRaw(std::size_t size) {
    if (!ok_ || in_.size() < size) {
      ok_ = false;
      return {};
    }
    const ByteView raw = in_.first(size);
    in_ = in_.subspan(size);
    return raw;
  }
  // A length-prefixed string of at most `size_max` bytes; a longer one is a failure.
  std::string GetString(std::size_t size_max) {
    const auto size = Get<std::uint32_t>();
    if (size > size_max) ok_ = false;
    return std::string(AsText(GetRaw(ok_ ? size : 0)));
  }
  void MarkInvalid() { ok_ = false; }

 private:
  ByteView in_;
  bool ok_ = true;
};

}  // namespace soma

#endif  // SOMA_BASE_BYTES_H_
