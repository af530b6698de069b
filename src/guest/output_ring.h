// SPDX-License-Identifier: Apache-2.0
// OutputRing: the last 256 KiB that a task has put out, with the kind (stdout, stderr, pty) of each
// byte, so that anyone can attach later and read from the beginning.
//
// Positions count all bytes since the task's start. Memory grows with what is in it, to at most
// kCapacity, bookkeeping included.
#ifndef SOMA_GUEST_OUTPUT_RING_H_
#define SOMA_GUEST_OUTPUT_RING_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "base/bytes.h"
#include "wire/reply.h"

namespace soma::guest {

class OutputRing {
 public:
  static constexpr std::size_t kCapacity = std::size_t{256} * 1024;

  // The oldest position that is still there, and the one behind the newest.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  // Bytes that Append can take without dropping anything at or after `position`.
  std::size_t RoomKeeping(std::uint64_t position) const;

  // Drops the oldest bytes if need be. At most kChunkMax bytes.
  void Append(wire::DataKind kind, ByteView bytes);

  struct Piece {
    wire::DataKind kind = wire::DataKind::kStdout;
    ByteView bytes;
  };
  // Some bytes of one kind from `position` on, which lies in [begin, end); valid until Append.
  Piece Read(std::uint64_t position) const;

  std::size_t memory_bytes() const { return used_; }

  static constexpr std::size_t kChunkMax = std::size_t{16} * 1024;

 private:
  struct Chunk {
    wire::DataKind kind;
    std::uint64_t position;
    std::string bytes;
  };
  // What a chunk costs beside its bytes.
  static constexpr std::size_t kChunkOverhead = 64;

  std::deque<Chunk> chunks_;
  std::size_t used_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_OUTPUT_RING_H_
