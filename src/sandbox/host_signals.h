// SPDX-License-Identifier: Apache-2.0
// HostSignals: what a person or a parent program tells this process, as numbers that the event loop
// reads. From its making on these signals do nothing by themselves, until the process ends.
#ifndef SOMA_SANDBOX_HOST_SIGNALS_H_
#define SOMA_SANDBOX_HOST_SIGNALS_H_

#include <utility>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace soma::sandbox {

class HostSignals {
 public:
  // INT, TERM, HUP, QUIT, USR1, USR2, WINCH; PIPE is only kept away. Before any thread is started.
  static Result<HostSignals> Catch();

  // Readable when there is something to take.
  const Fd& fd() const { return fd_; }
  // What has come since the last call, without PIPE.
  std::vector<int> Take();

 private:
  explicit HostSignals(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_HOST_SIGNALS_H_
