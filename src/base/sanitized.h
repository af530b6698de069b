// SPDX-License-Identifier: Apache-2.0
#ifndef SOMA_BASE_SANITIZED_H_
#define SOMA_BASE_SANITIZED_H_

namespace soma {

// True in a build under ASan or TSan. For tests: what such a build shows needs fewer of the same
// rounds, each of which costs it ten times as much; and it keeps freed memory, so that nobody can
// look at how much is in use.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace soma

#endif  // SOMA_BASE_SANITIZED_H_
