// SPDX-License-Identifier: Apache-2.0
// The environment of the command, worked out from the caller's and the policy. Pure.
#ifndef SOMA_POLICY_ENVIRONMENT_H_
#define SOMA_POLICY_ENVIRONMENT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/model.h"

namespace soma::policy {

// NAME=value strings: what passes of `host` (entries without "=" or with an empty name never do),
// then what the policy sets, the later rule of one name winning.
std::vector<std::string> ResolveEnvironment(const Policy& policy,
                                            std::span<const std::string_view> host);

// Replaces or appends NAME=value.
void SetVariable(std::vector<std::string>& environment, std::string_view name,
                 std::string_view value);

}  // namespace soma::policy

#endif  // SOMA_POLICY_ENVIRONMENT_H_
