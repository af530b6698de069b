// SPDX-License-Identifier: Apache-2.0
// From a policy to BPF.
#ifndef SOMA_TOOLS_SECCOMP_COMPILER_H_
#define SOMA_TOOLS_SECCOMP_COMPILER_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tools/seccomp/policy.h"

namespace soma::seccomp {

enum class Shape : std::uint8_t {
  // Call numbers with equal treatment form ranges, found by a balanced search tree. While a filter
  // loads the kernel simulates it for every call number: this is what makes loading quick.
  kTree,
  // One comparison a call, as most generators write it. For comparison in tests and bench only.
  kLinear,
};

// The program: a foreign architecture and x32 numbers kill the process; number -1 (a call that a
// tracer cancelled) and numbers beyond the policy answer ENOSYS. kOutOfRange when it exceeds the
// kernel's 4096 instructions (BPF_MAXINSNS).
Result<std::vector<sock_filter>> Compile(const Policy& policy, Shape shape);

}  // namespace soma::seccomp

#endif  // SOMA_TOOLS_SECCOMP_COMPILER_H_
