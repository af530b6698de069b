// SPDX-License-Identifier: Apache-2.0
// Handover: everything that a policy is made of, as one JSON text. `soma run` reads the files once
// and hands them to `soma-tools run` for the levels above `process`, which calls Load with the same
// inputs: the policy cannot differ between the two, whatever happens to the files in between.
#ifndef SOMA_POLICY_HANDOVER_H_
#define SOMA_POLICY_HANDOVER_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/load.h"

namespace soma::policy {

struct Handover {
  Context context;
  std::vector<Source> sources;
  CommandLineRules command_line;
};

inline constexpr std::size_t kHandoverBytesMax = std::size_t{4} << 20;

// Fails only for text that is not UTF-8, which no policy can be made of.
Result<std::string> EncodeHandover(const Handover& handover);
// From a descriptor that our own program passed; checked all the same.
Result<Handover> DecodeHandover(std::string_view json);

}  // namespace soma::policy

#endif  // SOMA_POLICY_HANDOVER_H_
