// SPDX-License-Identifier: Apache-2.0
// NameTable: the synthetic addresses of one sandbox. A name that the resolver answers for gets an
// address of its own, for good, so that a connect to that address always means that name, whatever
// the outside world's name servers say later.
//
// Addresses come from 198.18.0.0/15 (RFC 2544, benchmarking: routed nowhere). Pure.
#ifndef SOMA_EGRESS_NAME_TABLE_H_
#define SOMA_EGRESS_NAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace soma::egress {

// A wildcard rule allows names without end; a sandbox that asks for more than this gets no answer.
inline constexpr std::size_t kNamesMax = 16384;

class NameTable {
 public:
  // The address (host order) of a normal host name; nullopt when the table is full.
  std::optional<std::uint32_t> AddressFor(const std::string& name);
  // The name that the address was given to; nullptr for one that was never given out.
  const std::string* NameOf(std::uint32_t address) const;
  // Whether it is of the synthetic range at all.
  static bool IsSynthetic(std::uint32_t address);

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::string> names_;
};

}  // namespace soma::egress

#endif  // SOMA_EGRESS_NAME_TABLE_H_
