// SPDX-License-Identifier: Apache-2.0
#include "guest/loop.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "sys/fd.h"

namespace soma::guest {

Loop::Registration& Loop::Registration::operator=(Registration&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  loop_ = std::exchange(other.loop_, nullptr);
  id_ = other.id_;
  fd_ = other.fd_;
  events_ = other.events_;
  return *this;
}

// A descriptor that waits for nothing is taken out of the set: epoll reports EPOLLHUP and EPOLLERR
// unasked, and would spin.
void Loop::Registration::Want(std::uint32_t events) {
  if (loop_ == nullptr || events == events_) return;
  epoll_event event{.events = events, .data = {.u64 = id_}};
  const int operation =
      events == 0 ? EPOLL_CTL_DEL : (events_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
  SOMA_CHECK(::epoll_ctl(loop_->epoll_.get(), operation, fd_, &event) == 0 || errno == ENOMEM ||
             errno == ENOSPC);
  events_ = events;
}

void Loop::Registration::Reset() {
  if (loop_ == nullptr) return;
  Want(0);
  loop_->callbacks_.erase(id_);
  loop_ = nullptr;
}

Result<Loop> Loop::Create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return std::unexpected(Error::FromErrno(errno, "epoll_create1"));
  return Loop(std::move(epoll));
}

Result<Loop::Registration> Loop::Add(const Fd& fd, std::uint32_t events, Callback callback) {
  const std::uint64_t id = next_id_++;
  if (events != 0) {
    epoll_event event{.events = events, .data = {.u64 = id}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
      return std::unexpected(Error::FromErrno(errno, "epoll_ctl"));
    }
  }
  callbacks_.emplace(id, std::make_shared<Callback>(std::move(callback)));
  return Registration(this, id, fd.get(), events);
}

void Loop::RunOnce(int timeout_ms) {
  std::array<epoll_event, 32> ready{};
  const int count =
      ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event event = ready[static_cast<std::size_t>(i)];
    const std::uint64_t id =
        event.data.u64;  // a copy: epoll_event is packed, nothing may refer into it
    const auto it = callbacks_.find(id);
    if (it == callbacks_.end()) continue;  // removed by an earlier callback of this round
    const auto callback = it->second;      // keeps it alive if it removes itself
    (*callback)(event.events);
  }
}

}  // namespace soma::guest
