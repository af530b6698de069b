// SPDX-License-Identifier: Apache-2.0
// Explain: a policy in words for a person, and as JSON for a program. Pure; foreign bytes are
// escaped.
#ifndef SOMA_POLICY_EXPLAIN_H_
#define SOMA_POLICY_EXPLAIN_H_

#include <string>
#include <vector>

#include "policy/decide.h"
#include "policy/model.h"

namespace soma::policy {

// One line each, in sections; every rule with its origin.
std::vector<std::string> ExplainPolicy(const Policy& policy);

// One JSON object with the same content.
std::string PolicyJson(const Policy& policy);

// "allowed by …" or "refused by … (…); to allow: …".
std::string ExplainDecision(const Decision& decision);

}  // namespace soma::policy

#endif  // SOMA_POLICY_EXPLAIN_H_
