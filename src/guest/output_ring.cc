// SPDX-License-Identifier: Apache-2.0
#include "guest/output_ring.h"

#include <algorithm>  // IWYU pragma: keep
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/reply.h"

namespace soma::guest {

std::size_t OutputRing::RoomKeeping(std::uint64_t position) const {
  std::size_t used = used_;
  for (const Chunk& chunk : chunks_) {
    const std::size_t size = chunk.bytes.size();
    if (chunk.position + size > position) break;
    used -= size + kChunkOverhead;
  }
  return used + kChunkOverhead >= kCapacity ? 0 : kCapacity - kChunkOverhead - used;
}

// Small writes of one kind go into one chunk, so that byte-wise output doesn't cost a chunk a byte.
void OutputRing::Append(wire::DataKind kind, ByteView bytes) {
  SOMA_CHECK(bytes.size() <= kChunkMax);
  if (bytes.empty()) return;
  while (used_ + kChunkOverhead + bytes.size() > kCapacity) {
    used_ -= chunks_.front().bytes.size() + kChunkOverhead;
    begin_ += chunks_.front().bytes.size();
    chunks_.pop_front();
  }
  if (chunks_.empty() || chunks_.back().kind != kind ||
      chunks_.back().bytes.size() + bytes.size() > kChunkMax) {
    chunks_.push_back({.kind = kind, .position = end_, .bytes = {}});
    used_ += kChunkOverhead;
  }
  chunks_.back().bytes += AsText(bytes);
  used_ += bytes.size();
  end_ += bytes.size();
}

OutputRing::Piece OutputRing::Read(std::uint64_t position) const {
  SOMA_CHECK(position >= begin_ && position < end_);
  const auto after = std::ranges::upper_bound(chunks_, position, {}, &Chunk::position);
  const Chunk& chunk = *(after - 1);
  return {
      .kind = chunk.kind,
      .bytes = AsBytes(chunk.bytes).subspan(static_cast<std::size_t>(position - chunk.position))};
}

}  // namespace soma::guest
