// SPDX-License-Identifier: Apache-2.0
#include "aio/worker_pool.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "aio/task.h"

namespace soma::aio {

namespace asio = boost::asio;

struct WorkerPool::State {
  explicit State(std::size_t threads) : pool(threads) {}
  asio::thread_pool pool;
};

WorkerPool::WorkerPool(std::size_t threads) : state_(std::make_unique<State>(threads)) {}

WorkerPool::~WorkerPool() { state_->pool.join(); }

void WorkerPool::Post(std::function<void()> work) { asio::post(state_->pool, std::move(work)); }

Job WorkerPool::RunOnWorker(WorkerPool& pool, std::function<void()> work) {
  asio::thread_pool& threads = pool.state_->pool;
  co_await asio::async_initiate<decltype(asio::use_awaitable), void()>(
      [&threads](auto handler, std::function<void()> call) {
        // The handler goes back to the loop by the executor that it carries; the guard keeps the
        // loop running meanwhile.
        auto executor = asio::get_associated_executor(handler);
        auto guard = asio::make_work_guard(executor);
        asio::post(threads, [handler = std::move(handler), call = std::move(call), executor,
                             guard = std::move(guard)]() mutable {
          call();
          asio::post(executor, std::move(handler));
        });
      },
      asio::use_awaitable, std::move(work));
}

}  // namespace soma::aio
