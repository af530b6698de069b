// SPDX-License-Identifier: Apache-2.0
// Task<T>: a coroutine that ends with a Result<T>.
//
// Everything built on aio runs on one thread, the one inside Loop::Run. A Task starts when it is
// awaited or spawned. It never throws: errors are values. Parameters go by value, coroutines are
// named functions (a capturing lambda's captures die before the coroutine does).
#ifndef SOMA_AIO_TASK_H_
#define SOMA_AIO_TASK_H_

#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace soma::aio {

template <typename T>
using Task = boost::asio::awaitable<Result<T>>;

// For the body of a spawned child, whose end nobody asks about.
using Job = boost::asio::awaitable<void>;

}  // namespace soma::aio

#endif  // SOMA_AIO_TASK_H_
