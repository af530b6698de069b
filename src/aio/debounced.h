// SPDX-License-Identifier: Apache-2.0
// Debounced: runs a blocking action on a thread of its own, soon after it was asked for and once
// for everything that was asked meanwhile. For what the loop must not wait for, like making a
// journal durable.
#ifndef SOMA_AIO_DEBOUNCED_H_
#define SOMA_AIO_DEBOUNCED_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace soma::aio {

class Debounced {
 public:
  // `action` runs on the other thread, `delay` after the first Poke since its last run began.
  Debounced(std::chrono::milliseconds delay, std::function<void()> action);
  // Runs it once more if it was asked for, and waits for that.
  ~Debounced();
  Debounced(const Debounced&) = delete;
  Debounced& operator=(const Debounced&) = delete;

  // From any thread; does not block on the action.
  void Poke();

 private:
  void Run();

  const std::chrono::milliseconds delay_;
  const std::function<void()> action_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace soma::aio

#endif  // SOMA_AIO_DEBOUNCED_H_
