// SPDX-License-Identifier: Apache-2.0
// LossyChannel: for tests, a byte channel in memory that behaves as a virtio-serial port does: in
// order while it lasts; at a cut, a random part of what is on its way is lost in each direction,
// and the rest still arrives, stale. Seeded.
#ifndef SOMA_WIRE_LOSSY_CHANNEL_H_
#define SOMA_WIRE_LOSSY_CHANNEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "base/bytes.h"
#include "wire/link.h"

namespace soma::wire {

class LossyChannel {
 public:
  explicit LossyChannel(std::uint32_t seed) : random_(seed) {}

  std::size_t Pick(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random_);
  }

  // Moves a random amount from an end (a Link or a Session) into the channel.
  template <typename End>
  bool Pull(End& end, bool from_host) {
    auto& pipe = from_host ? to_guest_ : to_host_;
    const ByteView out = end.Output();
    if (out.empty() || pipe.size() > kPipeSize) return false;
    const std::size_t count = Pick(1, out.size());
    pipe.insert(pipe.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count));
    end.Wrote(count);
    return true;
  }

  // Delivers a random amount to an end.
  template <typename End>
  bool Push(End& end, bool to_host) {
    auto& pipe = to_host ? to_host_ : to_guest_;
    if (pipe.empty()) return false;
    const std::size_t count = Pick(1, std::min(pipe.size(), kInputMax));
    const Bytes chunk(pipe.begin(), pipe.begin() + static_cast<std::ptrdiff_t>(count));
    pipe.erase(pipe.begin(), pipe.begin() + static_cast<std::ptrdiff_t>(count));
    end.OnBytes(chunk);
    return true;
  }

  void Cut() {
    to_guest_.resize(Pick(0, to_guest_.size()));
    to_host_.resize(Pick(0, to_host_.size()));
  }

  void Inject(ByteView bytes, bool to_host) {
    auto& pipe = to_host ? to_host_ : to_guest_;
    pipe.insert(pipe.end(), bytes.begin(), bytes.end());
  }

 private:
  static constexpr std::size_t kPipeSize = std::size_t{200} * 1024;

  std::mt19937 random_;
  std::deque<std::uint8_t> to_guest_;
  std::deque<std::uint8_t> to_host_;
};

}  // namespace soma::wire

#endif  // SOMA_WIRE_LOSSY_CHANNEL_H_
