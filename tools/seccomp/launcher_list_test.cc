// SPDX-License-Identifier: Apache-2.0
// Filters add up: what launcher.list refuses, no sandbox can call, whatever its own list says.
#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <string>

#include "tools/seccomp/policy.h"

namespace soma::seccomp {
namespace {

Policy Load(const std::string& name) {
  auto policy = LoadPolicy(std::string(SOMA_SECCOMP_LISTS) + "/" + name + ".list");
  EXPECT_TRUE(policy) << policy.error().message();
  return *policy;
}

TEST(LauncherList, AllowsWhatSandboxesMay) {
  const Policy launcher = Load("launcher");
  for (const char* list : {"strict", "rooted", "vmm", "monitor"}) {
    for (const auto& [number, clauses] : Load(list).calls) {
      const bool may = std::ranges::any_of(
          clauses, [](const Clause& clause) { return clause.action == SECCOMP_RET_ALLOW; });
      if (!may) continue;
      const Clauses& outer = launcher.calls.at(number);
      EXPECT_TRUE(outer.size() == 1 && outer[0].tests.empty() &&
                  outer[0].action == SECCOMP_RET_ALLOW)
          << list << ": " << CallName(number);
    }
  }
}

TEST(LauncherList, RefusesTheRestOfTheKernel) {
  const Policy launcher = Load("launcher");
  for (const char* name : {"init_module", "finit_module", "kexec_load", "bpf", "perf_event_open",
                           "io_uring_setup", "userfaultfd", "add_key", "reboot", "swapon",
                           "clock_settime", "open_by_handle_at", "process_vm_writev"}) {
    const auto found = std::ranges::find_if(
        launcher.calls, [&](const auto& call) { return CallName(call.first) == name; });
    ASSERT_NE(found, launcher.calls.end()) << name;
    EXPECT_NE(found->second[0].action, static_cast<unsigned>(SECCOMP_RET_ALLOW)) << name;
  }
}

}  // namespace
}  // namespace soma::seccomp
