// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/bytes.h"

namespace soma::wire {
namespace {

std::uint64_t LoadLittle(const std::uint8_t* at, std::size_t size) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) word |= std::uint64_t{at[i]} << (8 * i);
  return word;
}

bool IsFrameType(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(FrameType::kHello) &&
         type <= static_cast<std::uint8_t>(FrameType::kResume);
}

bool IsHelloType(FrameType type) {
  return type == FrameType::kHello || type == FrameType::kHelloAck ||
         type == FrameType::kHelloStale;
}

LinkSecret GetSecret(ByteReader& reader) {
  LinkSecret secret{};
  const ByteView raw = reader.GetRaw(secret.size());
  std::copy(raw.begin(), raw.end(), secret.begin());
  return secret;
}

}  // namespace

// FNV-1a's shape over 64-bit words with a rotation, so that high bits reach low ones; the constants
// are FNV's and the finaliser is that of MurmurHash3.
std::uint64_t Checksum(ByteView bytes) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t sum = 0xcbf29ce484222325 ^ bytes.size();
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    sum = std::rotl((sum ^ LoadLittle(bytes.data() + i, 8)) * kPrime, 29);
  }
  if (i < bytes.size()) {
    sum = std::rotl((sum ^ LoadLittle(bytes.data() + i, bytes.size() - i)) * kPrime, 29);
  }
  sum = (sum ^ (sum >> 33)) * 0xff51afd7ed558ccd;
  sum = (sum ^ (sum >> 33)) * 0xc4ceb9fe1a85ec53;
  return sum ^ (sum >> 33);
}

std::array<std::uint8_t, kFrameHeaderSize> EncodeFrameHeader(const FrameHeader& header) {
  Bytes out;
  out.reserve(kFrameHeaderSize);
  ByteWriter writer(out);
  writer.Put(kFrameMagic);
  writer.Put(kWireVersion);
  writer.Put(static_cast<std::uint8_t>(header.type));
  writer.Put(header.flags);
  writer.Put(header.epoch);
  writer.Put(header.length);
  writer.Put(header.payload_sum);
  writer.Put(header.sequence);
  writer.Put(header.acknowledged);
  writer.Put(Checksum(out));
  std::array<std::uint8_t, kFrameHeaderSize> raw{};
  std::copy(out.begin(), out.end(), raw.begin());
  return raw;
}

std::optional<FrameHeader> DecodeFrameHeader(ByteView bytes) {
  if (bytes.size() < kFrameHeaderSize) return std::nullopt;
  ByteReader reader(bytes.first(kFrameHeaderSize));
  if (reader.Get<std::uint32_t>() != kFrameMagic) return std::nullopt;
  if (reader.Get<std::uint8_t>() != kWireVersion) return std::nullopt;
  const auto type = reader.Get<std::uint8_t>();
  FrameHeader header;
  header.flags = reader.Get<std::uint16_t>();
  header.epoch = reader.Get<std::uint64_t>();
  header.length = reader.Get<std::uint32_t>();
  header.payload_sum = reader.Get<std::uint32_t>();
  header.sequence = reader.Get<std::uint64_t>();
  header.acknowledged = reader.Get<std::uint64_t>();
  const auto sum = reader.Get<std::uint64_t>();
  if (!IsFrameType(type) || header.length > kFramePayloadMax) return std::nullopt;
  if (sum != Checksum(bytes.first(kFrameHeaderSize - sizeof sum))) return std::nullopt;
  header.type = static_cast<FrameType>(type);
  return header;
}

Bytes EncodeHello(FrameType type, std::uint16_t flags, std::uint64_t epoch,
                  const HelloPayload& payload) {
  Bytes body;
  body.reserve(kHelloPayloadSize);
  ByteWriter writer(body);
  writer.Put(payload.value);
  writer.PutRaw(payload.secret);
  writer.PutRaw(payload.next_secret);
  const auto raw = EncodeFrameHeader({.type = type,
                                      .flags = flags,
                                      .epoch = epoch,
                                      .length = static_cast<std::uint32_t>(body.size()),
                                      .payload_sum = static_cast<std::uint32_t>(Checksum(body))});
  Bytes out(raw.begin(), raw.end());
  out.insert(out.end(), body.begin(), body.end());
  return out;
}

std::optional<HelloFrame> DecodeHello(ByteView bytes) {
  if (bytes.size() < kHelloFrameSize) return std::nullopt;
  const auto header = DecodeFrameHeader(bytes);
  if (!header || !IsHelloType(header->type) || header->length != kHelloPayloadSize) {
    return std::nullopt;
  }
  const ByteView body = bytes.subspan(kFrameHeaderSize, kHelloPayloadSize);
  if (header->payload_sum != static_cast<std::uint32_t>(Checksum(body))) return std::nullopt;
  ByteReader reader(body);
  HelloFrame hello{.header = *header};
  hello.payload.value = reader.Get<std::uint64_t>();
  hello.payload.secret = GetSecret(reader);
  hello.payload.next_secret = GetSecret(reader);
  return hello;
}

}  // namespace soma::wire
