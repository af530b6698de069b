// SPDX-License-Identifier: Apache-2.0
// The built-in profiles, parsed when Soma was built (tools/profiles). Internal to the room.
#ifndef SOMA_POLICY_BUILTIN_H_
#define SOMA_POLICY_BUILTIN_H_

#include <optional>
#include <string_view>

#include "policy/document.h"

namespace soma::policy {

// What ParseTomlDocument makes of the profile's text; nullopt for a name that isn't built in.
std::optional<Node> BuiltinDocument(std::string_view name);

}  // namespace soma::policy

#endif  // SOMA_POLICY_BUILTIN_H_
