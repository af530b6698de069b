// SPDX-License-Identifier: Apache-2.0
// E2B's `network` object (create, and PUT …/network) as rules of our policy.
//
// The rules become one more narrowing element of the sandbox's policy: what a client asks for can
// never open what the server's own policy denies, so an `allowOut` of a private network opens
// nothing unless the server's policy names it.
//
// E2B lets allow beat deny, ours is the other way round. So denied networks are handed over without
// the parts that are allowed, which means the same.
#ifndef SOMA_EGRESS_E2B_NETWORK_H_
#define SOMA_EGRESS_E2B_NETWORK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/address.h"
#include "policy/model.h"

namespace soma::egress {

struct E2bNetwork {
  std::vector<std::string> allow_out;  // address, network, domain, "*.domain"
  std::vector<std::string> deny_out;   // address or network
  bool allow_internet_access = true;   // false is deny_out = ["0.0.0.0/0"]
};

// Entries of one list.
inline constexpr std::size_t kE2bEntriesMax = 1000;

// kInvalidArgument, in words for the API's 400: a domain in deny_out; a domain in allow_out while
// deny_out does not hold 0.0.0.0/0; an entry that is neither address, network nor domain; too many.
Result<policy::NetworkRules> RulesFromE2b(const E2bNetwork& network);

// The networks that together are `from` without `without`. At most 128 for each cut.
std::vector<policy::Cidr> Subtract(const policy::Cidr& from, const policy::Cidr& without);

}  // namespace soma::egress

#endif  // SOMA_EGRESS_E2B_NETWORK_H_
