// SPDX-License-Identifier: Apache-2.0
// Frame: the 48-byte header that every unit on the wire begins with, and its codec.
//
//   offset  0  magic          u32   'S' 'O' 'M' 'W'
//           4  version        u8    1
//           5  type           u8    FrameType
//           6  flags          u16   kFlagMore, kFlagFresh
//           8  epoch          u64   the connection this frame belongs to; other epochs are dropped
//          16  length         u32   bytes of payload, at most kFramePayloadMax
//          20  payload_sum    u32   Checksum of the payload
//          24  sequence       u64   kData: number of this frame, from 0; otherwise 0
//          32  acknowledged   u64   the number of the next kData frame that the sender expects
//          40  header_sum     u64   Checksum of the 40 bytes before
//
// All numbers are little-endian. A frame is at most 16 KiB, so that it enters a virtio-serial port
// by one atomic write (the port takes 32,768 bytes at once). The sums find cuts, not attackers: who
// may take over a link is decided by the secret inside HELLO (wire/link.h).
//
// Pure; input is untrusted.
#ifndef SOMA_WIRE_FRAME_H_
#define SOMA_WIRE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace soma::wire {

inline constexpr std::uint32_t kFrameMagic = 0x574d4f53;  // "SOMW"
inline constexpr std::uint8_t kWireVersion = 1;
inline constexpr std::size_t kFrameHeaderSize = 48;
inline constexpr std::size_t kFrameSizeMax = std::size_t{16} * 1024;
inline constexpr std::size_t kFramePayloadMax = kFrameSizeMax - kFrameHeaderSize;

enum class FrameType : std::uint8_t {
  kHello = 1,       // host -> guest: starts an epoch
  kHelloAck = 2,    // guest -> host: the epoch stands
  kHelloStale = 3,  // guest -> host: right secret, but the epoch is not newer than the current one
  kData = 4,        // a part of a message; numbered, acknowledged, sent again after a reconnect
  kAck = 5,         // acknowledgement without data
  kQuiesce = 6,     // host -> guest: stop at a frame boundary (before a snapshot)
  kQuiesced = 7,    // guest -> host: stopped, and everything sent was acknowledged
  kResume = 8,      // host -> guest: go on
};

// On kData: the message goes on in the next frame.
inline constexpr std::uint16_t kFlagMore = 1;
// On kHello and kHelloAck: nothing of earlier epochs is continued, both counters start at 0.
inline constexpr std::uint16_t kFlagFresh = 2;

struct FrameHeader {
  FrameType type = FrameType::kAck;
  std::uint16_t flags = 0;
  std::uint64_t epoch = 0;
  std::uint32_t length = 0;
  std::uint32_t payload_sum = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// A quick 64-bit sum; not cryptographic.
std::uint64_t Checksum(ByteView bytes);

// Writes the header with its sum.
std::array<std::uint8_t, kFrameHeaderSize> EncodeFrameHeader(const FrameHeader& header);

// Nullopt unless magic, version, type, length and sum are all right. `bytes` holds at least
// kFrameHeaderSize bytes; the rest is not looked at.
std::optional<FrameHeader> DecodeFrameHeader(ByteView bytes);

// What HELLO, HELLO_ACK and HELLO_STALE carry.
using LinkSecret = std::array<std::uint8_t, 32>;

struct HelloPayload {
  // kHello, kHelloAck: number of the next kData frame expected from the other side.
  // kHelloStale: the epoch that the guest is in.
  std::uint64_t value = 0;
  LinkSecret secret{};       // kHello: the secret of the epoch before; replies: the new one
  LinkSecret next_secret{};  // kHello: the secret from now on; replies: zero

  friend bool operator==(const HelloPayload&, const HelloPayload&) = default;
};

inline constexpr std::size_t kHelloPayloadSize = 8 + 32 + 32;
inline constexpr std::size_t kHelloFrameSize = kFrameHeaderSize + kHelloPayloadSize;

Bytes EncodeHello(FrameType type, std::uint16_t flags, std::uint64_t epoch,
                  const HelloPayload& payload);
// `bytes` holds at least kHelloFrameSize bytes. Nullopt unless it is a whole, undamaged frame of
// one of the three hello types.
struct HelloFrame {
  FrameHeader header;
  HelloPayload payload;
};
std::optional<HelloFrame> DecodeHello(ByteView bytes);

}  // namespace soma::wire

#endif  // SOMA_WIRE_FRAME_H_
