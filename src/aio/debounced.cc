// SPDX-License-Identifier: Apache-2.0
#include "aio/debounced.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <utility>

namespace soma::aio {

Debounced::Debounced(std::chrono::milliseconds delay, std::function<void()> action)
    : delay_(delay), action_(std::move(action)), thread_([this] { Run(); }) {}

Debounced::~Debounced() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Debounced::Poke() {
  {
    const std::lock_guard lock(mutex_);
    if (asked_) return;
    asked_ = true;
  }
  changed_.notify_all();
}

void Debounced::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return asked_ || stopping_; });
    if (!asked_) return;
    changed_.wait_for(lock, delay_, [this] { return stopping_; });
    asked_ = false;
    lock.unlock();
    action_();
    lock.lock();
  }
}

}  // namespace soma::aio
