// SPDX-License-Identifier: Apache-2.0
// Loop: a small epoll loop with callbacks, for the single-threaded agent.
//
// A Registration is owned by whoever owns the descriptor, declared after it, and ends with it. A
// callback may destroy any registration, its own included.
#ifndef SOMA_GUEST_LOOP_H_
#define SOMA_GUEST_LOOP_H_

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::guest {

class Loop {
 public:
  // `events` are those of epoll_ctl(2).
  using Callback = std::function<void(std::uint32_t events)>;

  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept { *this = std::move(other); }
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { Reset(); }
    // Which events to wait for from now on; 0 waits for none, and doesn't report a hang-up either.
    void Want(std::uint32_t events);
    void Reset();
    explicit operator bool() const { return loop_ != nullptr; }

   private:
    friend class Loop;
    Registration(Loop* loop, std::uint64_t id, int fd, std::uint32_t events)
        : loop_(loop), id_(id), fd_(fd), events_(events) {}
    Loop* loop_ = nullptr;
    std::uint64_t id_ = 0;
    int fd_ = -1;
    std::uint32_t events_ = 0;
  };

  static Result<Loop> Create();

  // Fails where epoll can't wait: for plain files, or without descriptors or memory.
  Result<Registration> Add(const Fd& fd, std::uint32_t events, Callback callback);

  // Waits at most `timeout_ms` (-1: for ever), then runs the callbacks of what is ready.
  void RunOnce(int timeout_ms);

 private:
  explicit Loop(Fd epoll) : epoll_(std::move(epoll)) {}

  Fd epoll_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<Callback>> callbacks_;
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_LOOP_H_
