// SPDX-License-Identifier: Apache-2.0
// WithoutWall: test builds can turn one wall off at run time, so that the suite proves that each
// wall matters.
//
// SOMA_TEST_WITHOUT is a comma-separated list of wall names. Outside test builds
// (-DSOMA_TEST_SWITCHES) the answer is a constant false and neither the variable's name nor any
// wall's is in the program.
#ifndef SOMA_BASE_TEST_SWITCH_H_
#define SOMA_BASE_TEST_SWITCH_H_

#include <string_view>

#if SOMA_TEST_SWITCHES
#include <cstdlib>
#endif

namespace soma {

#if SOMA_TEST_SWITCHES
inline bool WithoutWall(std::string_view name) {
  const char* const list = std::getenv("SOMA_TEST_WITHOUT");
  std::string_view rest = list != nullptr ? list : "";
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    if (rest.substr(0, comma) == name) return true;
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return false;
}
#else
constexpr bool WithoutWall(std::string_view) { return false; }
#endif

}  // namespace soma

#endif  // SOMA_BASE_TEST_SWITCH_H_
