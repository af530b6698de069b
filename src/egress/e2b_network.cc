// SPDX-License-Identifier: Apache-2.0
#include "egress/e2b_network.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/model.h"

namespace soma::egress {

namespace {

// Denied networks after all cuts; more says that the lists are made to be
// expensive.
constexpr std::size_t kNetworksMax = 4096;
// 0.0.0.0/0 in the mapped form of policy::Cidr.
constexpr std::uint8_t kMappedBits = 96;

policy::Origin RequestOrigin() { return {.where = "the request's network", .line = 0}; }

bool IsEverything(const policy::Cidr& cidr) {
  return cidr.prefix_bits == 0 || (cidr.base.IsV4() && cidr.prefix_bits == kMappedBits);
}

policy::NetworkRule Rule(bool allow, policy::NetworkTarget target, std::string text) {
  return {.allow = allow,
          .target = std::move(target),
          .text = std::move(text),
          .origin = RequestOrigin()};
}

// "example.com" or "*.example.com"; nullopt for what is no domain.
std::optional<std::string> DomainOf(std::string_view text) {
  const bool wildcard = text.starts_with("*.");
  const auto name = policy::NormalHostName(wildcard ? text.substr(2) : text);
  if (!name) return std::nullopt;
  return wildcard ? "*." + *name : *name;
}

Result<std::vector<policy::Cidr>> DeniedNetworks(const E2bNetwork& network) {
  std::vector<policy::Cidr> denied;
  for (const std::string& entry : network.deny_out) {
    const auto cidr = policy::ParseCidr(entry);
    if (!cidr) {
      return Fail(Errc::kInvalidArgument,
                  StrCat("denyOut takes addresses and networks only, not '", entry, "'"));
    }
    denied.push_back(*cidr);
  }
  return denied;
}

Status AddAllowed(const E2bNetwork& network, bool denies_everything, policy::NetworkRules& rules) {
  for (const std::string& entry : network.allow_out) {
    if (const auto cidr = policy::ParseCidr(entry)) {
      rules.rules.push_back(Rule(true, {.cidr = cidr}, entry));
      continue;
    }
    const auto domain = DomainOf(entry);
    if (!domain) {
      return Fail(Errc::kInvalidArgument,
                  StrCat("allowOut: '", entry, "' is no address, network or domain"));
    }
    if (!denies_everything) {
      return Fail(Errc::kInvalidArgument, "domains in allowOut need '0.0.0.0/0' in denyOut");
    }
    rules.rules.push_back(Rule(true, {.host = *domain}, entry));
  }
  return {};
}

// Adds what stays denied of one network. Allow rules are in `rules` already.
Status AddDenied(const policy::Cidr& denied, policy::NetworkRules& rules) {
  std::vector<policy::Cidr> left = {denied};
  for (const policy::NetworkRule& rule : rules.rules) {
    if (!rule.allow || !rule.target.cidr) continue;
    std::vector<policy::Cidr> next;
    for (const policy::Cidr& part : left) {
      std::ranges::copy(Subtract(part, *rule.target.cidr), std::back_inserter(next));
    }
    left = std::move(next);
    if (left.size() > kNetworksMax) {
      return Fail(Errc::kInvalidArgument, "denyOut and allowOut overlap in too many places");
    }
  }
  for (const policy::Cidr& part : left) {
    rules.rules.push_back(Rule(false, {.cidr = part}, policy::FormatCidr(part)));
  }
  if (rules.rules.size() > kNetworksMax) {
    return Fail(Errc::kInvalidArgument, "denyOut and allowOut overlap in too many places");
  }
  return {};
}

bool BitOf(const policy::IpAddress& address, std::uint8_t bit) {
  return (address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

}  // namespace

std::vector<policy::Cidr> Subtract(const policy::Cidr& from, const policy::Cidr& without) {
  const bool inside = without.prefix_bits >= from.prefix_bits && from.Contains(without.base);
  if (!inside) {
    return without.Contains(from.base) ? std::vector<policy::Cidr>{}
                                       : std::vector<policy::Cidr>{from};
  }
  // Halve towards the hole; each time the half without it stays.
  std::vector<policy::Cidr> parts;
  policy::Cidr rest = from;
  while (rest.prefix_bits < without.prefix_bits) {
    const std::uint8_t bit = rest.prefix_bits;
    ++rest.prefix_bits;
    policy::Cidr other = rest;
    policy::Cidr& upper = BitOf(without.base, bit) ? rest : other;
    upper.base.bytes[bit / 8] =
        static_cast<std::uint8_t>(upper.base.bytes[bit / 8] | (0x80U >> (bit % 8)));
    parts.push_back(other);
  }
  return parts;
}

Result<policy::NetworkRules> RulesFromE2b(const E2bNetwork& network) {
  if (network.allow_out.size() > kE2bEntriesMax || network.deny_out.size() > kE2bEntriesMax) {
    return Fail(Errc::kInvalidArgument, "allowOut and denyOut take at most 1000 entries each");
  }
  SOMA_ASSIGN(const std::vector<policy::Cidr> denied, DeniedNetworks(network));
  const bool denies_everything =
      !network.allow_internet_access || std::ranges::any_of(denied, IsEverything);
  policy::NetworkRules rules;
  rules.fallback_allow = policy::Sourced<bool>{!denies_everything, RequestOrigin()};
  SOMA_TRY(AddAllowed(network, denies_everything, rules));
  // With everything denied by default the single denials say nothing more.
  if (denies_everything) return rules;
  for (const policy::Cidr& cidr : denied) SOMA_TRY(AddDenied(cidr, rules));
  return rules;
}

}  // namespace soma::egress
