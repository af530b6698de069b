// SPDX-License-Identifier: Apache-2.0
// Merging layers into a Policy. Internal to the room; tests ask it directly.
#ifndef SOMA_POLICY_MERGE_H_
#define SOMA_POLICY_MERGE_H_

#include "base/result.h"
#include "policy/layer.h"
#include "policy/model.h"

namespace soma::policy {

// A policy without a single rule: hides every path, denies every connect, passes no variable.
Policy EmptyPolicy();

// Later layers add rules and replace single values; a `minimum` is only ever raised.
void Overlay(Policy& policy, const Layer& layer);

// For every question, the result allows at most what `policy` allowed. What the layer asks for
// beyond that has no effect, and is named in `policy.notices`.
void Narrow(Policy& policy, const Layer& layer);

}  // namespace soma::policy

#endif  // SOMA_POLICY_MERGE_H_
