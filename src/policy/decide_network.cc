// SPDX-License-Identifier: Apache-2.0
// The network's questions: names, bare addresses, addresses about to be dialled.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/model.h"

namespace soma::policy {

namespace {

constexpr std::size_t kHostNameMax = 253;  // RFC 1035 §2.3.4, without the root's dot
constexpr std::size_t kLabelMax = 63;

bool IsLabel(std::string_view label) {
  if (label.empty() || label.size() > kLabelMax) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  return std::ranges::all_of(label, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool NameMatches(const NetworkTarget& target, std::string_view name) {
  if (target.cidr || name.empty()) return false;
  if (target.host == "*") return true;
  if (target.host.starts_with("*.")) {
    return name.size() >= target.host.size() && name.ends_with(target.host.substr(1));
  }
  return target.host == name;
}

// A way around a denied network leads over an address that carries one of it.
bool Denies(const Cidr& cidr, const IpAddress& address) {
  const auto inner = EmbeddedAddress(address);
  return cidr.Contains(address) || (inner && cidr.Contains(*inner));
}

bool AddressMatches(const NetworkRule& rule, const IpAddress& address) {
  const NetworkTarget& target = rule.target;
  if (target.cidr) {
    return rule.allow ? target.cidr->Contains(address) : Denies(*target.cidr, address);
  }
  // "*" stands for every public address; a special one has to be named by network.
  return target.host == "*" && ClassifyAddress(address) == AddressClass::kPublic;
}

bool RuleMatches(const NetworkRule& rule, const ConnectRequest& request) {
  if (!rule.target.ports.Contains(request.port)) return false;
  if (request.address) return AddressMatches(rule, *request.address);
  return NameMatches(rule.target, request.name);
}

std::string RuleText(const NetworkRule& rule) {
  return StrCat(rule.allow ? "allow" : "deny", " \"", EscapeForTerminal(rule.text), "\"");
}

std::string Wanted(const ConnectRequest& request) {
  std::string host = request.name;
  if (request.address) {
    host = FormatAddress(*request.address);
    if (!request.address->IsV4()) host = StrCat("[", host, "]");
  }
  return StrCat(host, ":", request.port);
}

Decision Allowed() { return {.allowed = true, .rule = {}, .origin = {}, .remedy = {}}; }

Decision Refused(std::string rule, Origin origin, std::string remedy) {
  return {.allowed = false,
          .rule = std::move(rule),
          .origin = std::move(origin),
          .remedy = std::move(remedy)};
}

std::string AllowRemedy(const Policy& policy, bool is_base, const Origin& origin,
                        std::string_view wanted) {
  if (!is_base) return StrCat("change or remove the rule at ", origin.ToText());
  if (policy.locked) return StrCat("ask whoever owns ", policy.locked->where);
  return StrCat("--allow-net ", wanted, ", or allow = [\"", wanted, "\"] under [network]");
}

bool HasAllowRule(const NetworkRules& rules) {
  return std::ranges::any_of(rules.rules, &NetworkRule::allow);
}

// What a layer answers when no rule of it matches.
bool FallbackAllows(const NetworkRules& rules, bool is_base) {
  if (rules.fallback_allow) return rules.fallback_allow->value;
  return !is_base && !HasAllowRule(rules);
}

// Deny beats allow beats the layer's default. `matches` says whether a rule's target is meant.
template <typename Matches>
Decision DecideInLayer(const Policy& policy, std::size_t index, std::string_view wanted,
                       Matches matches) {
  const NetworkRules& layer = policy.network[index];
  const bool is_base = index == 0;
  const NetworkRule* allowing = nullptr;
  for (const NetworkRule& rule : layer.rules) {
    if (!matches(rule)) continue;
    if (!rule.allow) {
      return Refused(RuleText(rule), rule.origin,
                     policy.locked && is_base
                         ? StrCat("ask whoever owns ", policy.locked->where)
                         : StrCat("change or remove the rule at ", rule.origin.ToText()));
    }
    allowing = &rule;
  }
  if (allowing != nullptr) {
    return {.allowed = true, .rule = RuleText(*allowing), .origin = allowing->origin, .remedy = {}};
  }
  const Origin origin = layer.fallback_allow ? layer.fallback_allow->origin : Origin{};
  if (FallbackAllows(layer, is_base)) {
    return {.allowed = true, .rule = "default \"allow\"", .origin = origin, .remedy = {}};
  }
  const Origin& blamed =
      origin.where.empty() && !layer.rules.empty() ? layer.rules.front().origin : origin;
  return Refused("default \"deny\"", blamed, AllowRemedy(policy, is_base, blamed, wanted));
}

template <typename Matches>
Decision DecideInAllLayers(const Policy& policy, std::string_view wanted, Matches matches) {
  Decision first = Refused("no network rules", {}, "");
  for (std::size_t i = 0; i < policy.network.size(); ++i) {
    Decision decision = DecideInLayer(policy, i, wanted, matches);
    if (!decision.allowed) return decision;
    if (i == 0) first = std::move(decision);
  }
  return first;
}

// An allow rule of the base that names the special address by network, on the port.
bool NamedByNetwork(const Policy& policy, const IpAddress& address, std::uint16_t port) {
  if (policy.network.empty()) return false;
  return std::ranges::any_of(policy.network.front().rules, [&](const NetworkRule& rule) {
    return rule.allow && rule.target.cidr && rule.target.cidr->Contains(address) &&
           rule.target.ports.Contains(port) &&
           // "0.0.0.0/0" and "::/0" mean the internet, not the machine beside us.
           rule.target.cidr->prefix_bits != 0 && rule.target.cidr->prefix_bits != 96;
  });
}

Decision RefuseSpecial(const Policy& policy, const IpAddress& address, std::string_view kind,
                       std::uint16_t port) {
  const std::string text = FormatAddress(address);
  const std::string wanted = StrCat(address.IsV4() ? text : StrCat("[", text, "]"), ":", port);
  return Refused(StrCat(kind, " addresses are refused unless a rule names them by network"),
                 {"built-in", 0}, AllowRemedy(policy, true, {}, wanted));
}

}  // namespace

std::optional<std::string> NormalHostName(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > kHostNameMax) return std::nullopt;
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  for (const std::string_view label : Split(out, '.')) {
    if (!IsLabel(label)) return std::nullopt;
  }
  return out;
}

Decision DecideLookup(const Policy& policy, std::string_view name) {
  const auto normal = NormalHostName(name);
  if (!normal) return Refused("not a host name", {}, "");
  // A deny rule for some ports only leaves the others possible.
  return DecideInAllLayers(policy, *normal, [&](const NetworkRule& rule) {
    const bool all_ports = rule.target.ports == PortRange{};
    return NameMatches(rule.target, *normal) && (rule.allow || all_ports);
  });
}

Decision DecideConnect(const Policy& policy, const ConnectRequest& request) {
  if (request.port == 0) return Refused("port 0", {}, "");
  ConnectRequest normal = request;
  if (request.address) {
    const AddressClass kind = ClassifyAddress(*request.address);
    if (kind != AddressClass::kPublic && !NamedByNetwork(policy, *request.address, request.port)) {
      return RefuseSpecial(policy, *request.address, AddressClassName(kind), request.port);
    }
  } else {
    const auto name = NormalHostName(request.name);
    if (!name) return Refused("not a host name", {}, "");
    normal.name = *name;
  }
  return DecideInAllLayers(policy, Wanted(normal), [&normal](const NetworkRule& rule) {
    return RuleMatches(rule, normal);
  });
}

Decision DecideDial(const Policy& policy, const ConnectRequest& request, const IpAddress& dialled,
                    std::span<const IpAddress> host_addresses) {
  const bool named = NamedByNetwork(policy, dialled, request.port);
  const AddressClass kind = ClassifyAddress(dialled);
  if (!named && kind != AddressClass::kPublic) {
    return RefuseSpecial(policy, dialled, AddressClassName(kind), request.port);
  }
  const bool is_own = std::ranges::any_of(host_addresses, [&dialled](const IpAddress& own) {
    return own == dialled || EmbeddedAddress(dialled) == own;
  });
  if (!named && is_own) {
    return RefuseSpecial(policy, dialled, "this machine's own", request.port);
  }
  for (const NetworkRules& layer : policy.network) {
    for (const NetworkRule& rule : layer.rules) {
      if (!rule.allow && rule.target.ports.Contains(request.port) && rule.target.cidr &&
          Denies(*rule.target.cidr, dialled)) {
        return Refused(RuleText(rule), rule.origin,
                       StrCat("change or remove the rule at ", rule.origin.ToText()));
      }
    }
  }
  return Allowed();
}

bool MayUseNetwork(const Policy& policy) {
  if (policy.network.empty()) return false;
  for (std::size_t i = 0; i < policy.network.size(); ++i) {
    if (!FallbackAllows(policy.network[i], i == 0) && !HasAllowRule(policy.network[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace soma::policy
