// SPDX-License-Identifier: Apache-2.0
// The syntax of single rules: a path, a network target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "policy/address.h"
#include "policy/decide.h"
#include "policy/layer.h"
#include "policy/load.h"
#include "policy/model.h"

namespace soma::policy {

namespace {

bool HasControlCharacter(std::string_view text) {
  return std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::unexpected<Error> BadRule(std::string_view text, std::string_view why) {
  return Fail(Errc::kInvalidArgument,
              StrCat("\"", EscapeForTerminal(text.substr(0, 200)), "\" ", why));
}

std::optional<PortRange> ParsePorts(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = ParseInt<std::uint16_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : ParseInt<std::uint16_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) return std::nullopt;
  return PortRange{*first, *last};
}

struct HostAndPorts {
  std::string_view host;
  std::optional<std::string_view> ports;
};

// Takes ":PORT" off. Brackets are needed for a port behind an IPv6 address, as in a URL.
std::optional<HostAndPorts> SplitPorts(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(close + 1);
    HostAndPorts out{text.substr(1, close - 1), std::nullopt};
    if (!out.host.contains(':') || (!rest.empty() && rest[0] != ':')) return std::nullopt;
    if (!rest.empty()) out.ports = rest.substr(1);
    return out;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return HostAndPorts{text, std::nullopt};
  }
  return HostAndPorts{text.substr(0, colon), text.substr(colon + 1)};
}

std::optional<std::string> ParseHostPattern(std::string_view text) {
  if (text == "*") return "*";
  const bool below = text.starts_with("*.");
  auto name = NormalHostName(below ? text.substr(2) : text);
  if (!name) return std::nullopt;
  // "1.2.3" or "0x7f.1" would be an address to some readers and a name to others.
  const std::string_view last = std::string_view(*name).substr(name->rfind('.') + 1);
  if (last[0] >= '0' && last[0] <= '9') return std::nullopt;
  return below ? StrCat("*.", *name) : *std::move(name);
}

}  // namespace

Result<std::string> ParsePathPattern(std::string_view text, const Context& context) {
  if (text.empty()) return BadRule(text, "is no path");
  if (text.size() > kPatternBytesMax) return BadRule(text, "is longer than 4096 bytes");
  if (HasControlCharacter(text)) return BadRule(text, "has a control character in it");
  std::string absolute(text);
  if (text[0] == '~') {
    if (text.size() > 1 && text[1] != '/')
      return BadRule(text, "names another user's home: write it out");
    if (context.home.empty()) return BadRule(text, "needs a home directory, and there is none");
    absolute = StrCat(context.home, text.substr(1));
  } else if (text[0] != '/') {
    absolute = StrCat(context.workspace, "/", text);
  }
  auto normal = NormalPath(absolute);
  if (!normal) return BadRule(text, "is no usable path");
  return *std::move(normal);
}

Result<NetworkTarget> ParseNetworkTarget(std::string_view text) {
  if (text.contains("//"))
    return BadRule(text, "is a URL: name only the host, as in \"example.com:443\"");
  NetworkTarget target;
  const auto parts = SplitPorts(text);
  if (!parts) return BadRule(text, "is neither a host nor a network");
  if (parts->ports) {
    const auto ports = ParsePorts(*parts->ports);
    if (!ports) return BadRule(text, "has a port that is not 1 to 65535 or a range of these");
    target.ports = *ports;
  }
  target.cidr = ParseCidr(parts->host);
  if (target.cidr) return target;
  if (parts->host.contains('/') || parts->host.contains(':')) {
    return BadRule(text, "is no network (bits behind the prefix must be zero)");
  }
  auto host = ParseHostPattern(parts->host);
  if (!host) {
    return BadRule(text, "is no host name (\"*\" may only stand alone or as the first label)");
  }
  target.host = *std::move(host);
  return target;
}

}  // namespace soma::policy
