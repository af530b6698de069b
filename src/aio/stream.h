// SPDX-License-Identifier: Apache-2.0
// ByteStream: a two-way byte channel (a client's connection, a port inside a sandbox), and the ones
// that the kernel gives: sockets and listeners.
//
// At most one Read and one Write at a time. A deadline bounds all waiting: when it passes, pending
// and later calls fail with kDeadlineExceeded until it is set again.
#ifndef SOMA_AIO_STREAM_H_
#define SOMA_AIO_STREAM_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::aio {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // At least one byte; 0 means the other side has finished sending.
  virtual Task<std::size_t> Read(std::span<std::uint8_t> out) = 0;
  // All of it. `bytes` must stay valid until the end.
  virtual Task<void> Write(ByteView bytes) = 0;
  virtual void SetReadDeadline(std::chrono::nanoseconds from_now) = 0;
  virtual void SetWriteDeadline(std::chrono::nanoseconds from_now) = 0;
  // Tells the other side that nothing more comes.
  virtual void ShutdownWrite() = 0;
  // Ends pending calls with kCancelled. Idempotent.
  virtual void Close() = 0;
  // Closes so that the other side sees a failure (TCP: a reset), not an orderly end.
  virtual void Reset() = 0;
};

// Takes a connected stream socket (TCP or Unix).
std::unique_ptr<ByteStream> MakeSocketStream(Loop& loop, Fd socket);

// A listening, non-blocking, close-on-exec socket. TCP takes an IP address ("127.0.0.1", "::1");
// port 0 lets the kernel choose.
Result<Fd> ListenTcp(const std::string& address, std::uint16_t port);
// Its own port.
Result<std::uint16_t> LocalPort(const Fd& socket);

// Accepts from a listening socket.
class Acceptor {
 public:
  Acceptor(Loop& loop, Fd listener);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // A transient lack (descriptors, memory) is waited out inside; an error means that the listener
  // is closed or broken.
  Task<Fd> Accept();
  void Close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Copies both ways until both directions have ended or one failed; closes both. Idle for longer
// than `idle_max` ends it too. Returns the bytes copied in both directions.
Task<std::uint64_t> Splice(Loop& loop, ByteStream& a, ByteStream& b,
                           std::chrono::nanoseconds idle_max);

}  // namespace soma::aio

#endif  // SOMA_AIO_STREAM_H_
