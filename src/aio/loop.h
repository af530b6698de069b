// SPDX-License-Identifier: Apache-2.0
// Loop: the event loop, and the waits that need nothing else. One thread; every object of aio
// belongs to one Loop and must not outlive it.
#ifndef SOMA_AIO_LOOP_H_
#define SOMA_AIO_LOOP_H_

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "aio/task.h"

namespace soma::aio {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until Stop, or until nothing is left to wait for.
  void Run();
  void Stop();
  // After Stop: Run may be called again.
  void Restart();
  // Calls Stop-like handlers in the loop: `handler` runs once for SIGTERM or SIGINT.
  void OnTermination(std::function<void()> handler);

  // Runs a job beside everything else. For the roots of a program only: a job that belongs to an
  // object lives in that object's TaskGroup.
  void SpawnRoot(Job job);

  boost::asio::any_io_executor executor();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Waits; ends early only when the loop is destroyed.
Job Sleep(Loop& loop, std::chrono::nanoseconds duration);

// True once the descriptor is readable (or hung up), false when the deadline passed before. The
// descriptor stays the caller's and must stay open meanwhile.
Task<bool> WaitReadable(Loop& loop, int descriptor, std::chrono::nanoseconds timeout);
// The same for room to write, which is also how connect(2) says that it is done.
Task<bool> WaitWritable(Loop& loop, int descriptor, std::chrono::nanoseconds timeout);

}  // namespace soma::aio

#endif  // SOMA_AIO_LOOP_H_
