// SPDX-License-Identifier: Apache-2.0
// The questions that a policy answers, each with its reason. Pure: no file, no clock, no name
// lookup. Whoever asks resolves first (symbolic links, names) and says what was found.
//
// Inputs may come from inside a sandbox: any bytes, any length. The answer to a path or name that
// is not well formed is a refusal.
#ifndef SOMA_POLICY_DECIDE_H_
#define SOMA_POLICY_DECIDE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/address.h"
#include "policy/model.h"

namespace soma::policy {

// "hide", "read", "write".
std::string_view VerdictWord(PathVerdict verdict);

// `rule`, `origin` and `remedy` are filled in for refusals, and `rule` and `origin` for allowances.
struct Decision {
  bool allowed = false;
  std::string rule;    // `hide "/home/u/.ssh"`, `default "deny"`
  Origin origin;       // where that rule stands
  std::string remedy;  // the smallest change that would allow it, in words; empty: nothing would
};

enum class Access : std::uint8_t { kRead, kWrite };

// The strictest verdict of all layers on an absolute path; a path that is not absolute is hidden,
// "." and ".." and empty components are resolved by text first.
PathVerdict VerdictOn(const Policy& policy, std::string_view path);
Decision DecidePath(const Policy& policy, std::string_view path, Access access);

// What a sandbox asks of the network: a name (from the resolver's synthetic address, or the Open of
// a guest) or a bare address, and a port.
struct ConnectRequest {
  std::string name;                  // as asked; empty when a bare address was dialled
  std::optional<IpAddress> address;  // set when `name` is empty
  std::uint16_t port = 0;
};

// For the resolver: could any connect to this name be allowed? A query for any other name is
// answered with NXDOMAIN, so that a name never leaves the house as a message.
Decision DecideLookup(const Policy& policy, std::string_view name);

// First question of the broker, before it resolves. Deny beats allow; bare loopback, private,
// link-local, metadata, multicast and reserved addresses are refused unless an allow rule names
// them by network.
Decision DecideConnect(const Policy& policy, const ConnectRequest& request);

// Second question, on the address that the broker is about to dial for an allowed request: the
// special classes and `host_addresses` (those of this machine's interfaces) are refused unless a
// rule names them by network, and so is what a deny rule covers. Ask for each address, dial only
// what it allows.
Decision DecideDial(const Policy& policy, const ConnectRequest& request, const IpAddress& dialled,
                    std::span<const IpAddress> host_addresses);

// Whether any connect at all could be allowed: without it no broker needs to run.
bool MayUseNetwork(const Policy& policy);

// Environment: whether the host's variable is handed in.
bool PassesEnvironment(const Policy& policy, std::string_view name);

// "example.com" or "Example.COM." → "example.com"; nullopt for what is no host name (RFC 1123, with
// underscores; at most 253 characters).
std::optional<std::string> NormalHostName(std::string_view text);

// Lower-level helpers, shared with the loader. Resolves ".", ".." and repeated slashes by text;
// nullopt when not absolute, longer than 4,096 bytes or with a NUL.
std::optional<std::string> NormalPath(std::string_view path);

}  // namespace soma::policy

#endif  // SOMA_POLICY_DECIDE_H_
