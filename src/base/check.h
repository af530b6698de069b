// SPDX-License-Identifier: Apache-2.0
// SOMA_CHECK: stops the process when our own code is wrong. Never for input, kernel answers or
// configuration. On in every build. Async-signal-safe: one write(2), then abort.
#ifndef SOMA_BASE_CHECK_H_
#define SOMA_BASE_CHECK_H_

namespace soma {

[[noreturn]] void CheckFailed(const char* expression, const char* file, int line);

}  // namespace soma

#define SOMA_CHECK(expression)                              \
  do {                                                      \
    if (!(expression)) [[unlikely]] {                       \
      ::soma::CheckFailed(#expression, __FILE__, __LINE__); \
    }                                                       \
  } while (false)

#endif  // SOMA_BASE_CHECK_H_
