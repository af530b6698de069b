// SPDX-License-Identifier: Apache-2.0
// NamedHidden: what a command line names that exists and is hidden from the command. A read of it
// is answered by the view, with ENOENT or EACCES and without a word of ours; a person who reads the
// command's own error should learn that there is a rule behind it. A guess by the words of the
// command line: what a script reads inside is not seen.
#ifndef SOMA_FRONT_NAMED_HIDDEN_H_
#define SOMA_FRONT_NAMED_HIDDEN_H_

#include <span>
#include <string>
#include <vector>

#include "policy/model.h"

namespace soma::front {

struct HiddenName {
  std::string path;
  std::string rule;
  std::string remedy;
};

struct NamedHiddenInputs {
  const policy::Policy& policy;
  std::span<const std::string> words;
  std::string directory;  // that relative names start from
  std::string home;       // for "~" and "$HOME"; may be empty
};

inline constexpr std::size_t kHiddenNamesMax = 5;

// In order, each once, kHiddenNamesMax at most. Looks at the disk.
std::vector<HiddenName> NamedHidden(const NamedHiddenInputs& inputs);

}  // namespace soma::front

#endif  // SOMA_FRONT_NAMED_HIDDEN_H_
