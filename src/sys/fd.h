// SPDX-License-Identifier: Apache-2.0
// Fd: owns one file descriptor. Close-on-exec from birth everywhere in this house.
#ifndef SOMA_SYS_FD_H_
#define SOMA_SYS_FD_H_

#include <unistd.h>

#include <utility>

namespace soma {

// Move-only. The destructor closes and ignores the error: what must be durable is synced before,
// explicitly.
class Fd {
 public:
  Fd() = default;
  // Takes ownership of `raw`; -1 means empty.
  explicit Fd(int raw) : raw_(raw) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      raw_ = std::exchange(other.raw_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  // Borrowed: stays owned by this object.
  int get() const { return raw_; }
  explicit operator bool() const { return raw_ >= 0; }
  // Gives ownership away.
  [[nodiscard]] int Release() { return std::exchange(raw_, -1); }
  void Reset() {
    if (raw_ >= 0) ::close(std::exchange(raw_, -1));
  }

 private:
  int raw_ = -1;
};

}  // namespace soma

#endif  // SOMA_SYS_FD_H_
