// SPDX-License-Identifier: Apache-2.0
// WorkerPool: a few threads for calls that block (fdatasync, getaddrinfo), so that the loop never
// does. The loop's thread awaits the result. What may hang for seconds gets a pool of its own, or
// it stops what is quick.
#ifndef SOMA_AIO_WORKER_POOL_H_
#define SOMA_AIO_WORKER_POOL_H_

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "aio/loop.h"
#include "aio/task.h"
#include "base/result.h"

namespace soma::aio {

class WorkerPool {
 public:
  // Enough for what waits for the disk.
  static constexpr std::size_t kThreads = 4;

  explicit WorkerPool(std::size_t threads = kThreads);
  // Waits for calls that are running.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs `work` on one of the threads, some time soon; nobody learns of its end.
  void Post(std::function<void()> work);

  // Runs `work` on one of the threads and goes on in the loop with what it gave. What `work` uses
  // must be its own or safe to use from another thread; it is not interrupted.
  template <typename T>
  static Task<T> Run(WorkerPool& pool, std::function<Result<T>()> work) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    co_await RunOnWorker(pool, [result, work = std::move(work)] { result->emplace(work()); });
    co_return *std::move(*result);
  }

 private:
  static Job RunOnWorker(WorkerPool& pool, std::function<void()> work);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace soma::aio

#endif  // SOMA_AIO_WORKER_POOL_H_
