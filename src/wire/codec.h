// SPDX-License-Identifier: Apache-2.0
// FieldWriter and FieldReader: the two archives of wire/fields.h, and variants of structs with a
// type byte. Private to the codec of messages and records. Numbers are little-endian, a flag is a
// byte 0 or 1, text and lists have a 32-bit count before them.
#ifndef SOMA_WIRE_CODEC_H_
#define SOMA_WIRE_CODEC_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"

namespace soma::wire {

class FieldWriter {
 public:
  explicit FieldWriter(Bytes& out) : writer_(out) {}
  // False after a field beyond its limit.
  bool ok() const { return ok_; }

  template <std::unsigned_integral T>
  void Number(const T& value) {
    writer_.Put(value);
  }
  template <std::signed_integral T>
  void Signed(const T& value) {
    writer_.Put(static_cast<std::make_unsigned_t<T>>(value));
  }
  void Flag(const bool& value) {
    writer_.Put(std::uint8_t{value ? std::uint8_t{1} : std::uint8_t{0}});
  }
  template <typename E>
  void Enum(const E& value, E last) {
    if (value > last) ok_ = false;
    writer_.Put(static_cast<std::uint8_t>(value));
  }
  void Text(const std::string& text, std::size_t size_max) {
    if (text.size() > size_max) ok_ = false;
    if (ok_) writer_.PutString(text);
  }
  void Blob(const Bytes& bytes, std::size_t size_max) {
    if (bytes.size() > size_max) ok_ = false;
    if (ok_) writer_.PutString(AsText(bytes));
  }
  void Texts(const std::vector<std::string>& texts, std::size_t count_max, std::size_t size_max) {
    if (!Count(texts.size(), count_max)) return;
    for (const std::string& text : texts) Text(text, size_max);
  }
  template <typename T>
  void List(std::vector<T>& items, std::size_t count_max) {
    if (!Count(items.size(), count_max)) return;
    for (T& item : items) Fields(*this, item);
  }

 private:
  bool Count(std::size_t count, std::size_t count_max) {
    if (count > count_max) ok_ = false;
    if (ok_) writer_.Put(static_cast<std::uint32_t>(count));
    return ok_;
  }

  ByteWriter writer_;
  bool ok_ = true;
};

class FieldReader {
 public:
  explicit FieldReader(ByteView in) : reader_(in) {}
  // True when every field was there, within its limit, and nothing is left over.
  bool AtEnd() const { return reader_.AtEnd(); }

  template <std::unsigned_integral T>
  void Number(T& value) {
    value = reader_.Get<T>();
  }
  template <std::signed_integral T>
  void Signed(T& value) {
    value = static_cast<T>(reader_.Get<std::make_unsigned_t<T>>());
  }
  void Flag(bool& value) {
    const auto byte = reader_.Get<std::uint8_t>();
    if (byte > 1) reader_.MarkInvalid();
    value = byte == 1;
  }
  template <typename E>
  void Enum(E& value, E last) {
    const auto byte = reader_.Get<std::uint8_t>();
    if (byte > static_cast<std::uint8_t>(last)) {
      reader_.MarkInvalid();
    } else {
      value = static_cast<E>(byte);
    }
  }
  void Text(std::string& text, std::size_t size_max) { text = reader_.GetString(size_max); }
  void Blob(Bytes& bytes, std::size_t size_max) {
    const auto size = reader_.Get<std::uint32_t>();
    if (size > size_max) reader_.MarkInvalid();
    const ByteView raw = reader_.GetRaw(reader_.ok() ? size : 0);
    bytes.assign(raw.begin(), raw.end());
  }
  void Texts(std::vector<std::string>& texts, std::size_t count_max, std::size_t size_max) {
    const std::size_t count = Count(count_max);
    texts.reserve(count);
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) Text(texts.emplace_back(), size_max);
  }
  template <typename T>
  void List(std::vector<T>& items, std::size_t count_max) {
    const std::size_t count = Count(count_max);
    items.reserve(count);
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) Fields(*this, items.emplace_back());
  }

 private:
  // Every item takes at least four bytes, so a lying count reserves no memory to speak of.
  std::size_t Count(std::size_t count_max) {
    const auto count = reader_.Get<std::uint32_t>();
    if (count > count_max || count > reader_.remaining() / 4) reader_.MarkInvalid();
    return reader_.ok() ? count : 0;
  }

  ByteReader reader_;
};

// Makes the alternative number `index` (counted from 0) of a variant; false if there is none.
template <typename Variant>
bool EmplaceAlternative(Variant& variant, std::size_t index) {
  return [&]<std::size_t... kIndexes>(std::index_sequence<kIndexes...>) {
    return ((kIndexes == index && (variant.template emplace<kIndexes>(), true)) || ...);
  }(std::make_index_sequence<std::variant_size_v<Variant>>());
}

}  // namespace soma::wire

#endif  // SOMA_WIRE_CODEC_H_
