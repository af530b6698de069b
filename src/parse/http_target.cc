// SPDX-License-Identifier: Apache-2.0
#include "parse/http_target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::parse {
namespace {

constexpr std::size_t kQueryPairsMax = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

Result<QueryPairs> ParseQuery(std::string_view text) {
  QueryPairs pairs;
  if (text.empty()) return pairs;
  for (const std::string_view part : Split(text, '&')) {
    if (part.empty()) continue;
    if (pairs.size() == kQueryPairsMax) {
      return Fail(Errc::kInvalidArgument, "the query has too many parts");
    }
    const std::size_t equals = part.find('=');
    auto name = PercentDecode(part.substr(0, equals), true);
    auto value = PercentDecode(
        equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1), true);
    if (!name || !value) return Fail(Errc::kInvalidArgument, "the query has a broken escape");
    pairs.emplace_back(*std::move(name), *std::move(value));
  }
  return pairs;
}

const std::string* HttpTarget::Find(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

Result<HttpTarget> ParseTarget(std::string_view target) {
  if (target.empty() || target[0] != '/') {
    return Fail(Errc::kInvalidArgument, "the request target is not a path");
  }
  target = target.substr(0, target.find('#'));
  const std::size_t question = target.find('?');
  HttpTarget parsed{.path = std::string(target.substr(0, question)), .query = {}};
  if (question != std::string_view::npos) {
    SOMA_ASSIGN(parsed.query, ParseQuery(target.substr(question + 1)));
  }
  return parsed;
}

Result<std::vector<std::string>> PathSegments(std::string_view path) {
  std::vector<std::string> segments;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty()) continue;
    auto decoded = PercentDecode(part);
    if (!decoded || decoded->find('\0') != std::string::npos) {
      return Fail(Errc::kInvalidArgument, "the path has a broken escape");
    }
    segments.push_back(*std::move(decoded));
  }
  return segments;
}

Result<QueryPairs> ParseMetadataFilter(std::string_view decoded_query_value) {
  SOMA_ASSIGN(QueryPairs pairs, ParseQuery(decoded_query_value));
  for (auto& [name, value] : pairs) {
    auto twice_name = PercentDecode(name);
    auto twice_value = PercentDecode(value);
    if (!twice_name || !twice_value) {
      return Fail(Errc::kInvalidArgument, "the metadata filter has a broken escape");
    }
    name = *std::move(twice_name);
    value = *std::move(twice_value);
  }
  return pairs;
}

std::optional<HostPort> ParseHost(std::string_view host_header) {
  HostPort parsed;
  std::string_view rest;
  if (host_header.starts_with('[')) {
    const std::size_t close = host_header.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    parsed.host = host_header.substr(1, close - 1);
    rest = host_header.substr(close + 1);
  } else {
    const std::size_t colon = host_header.find(':');
    parsed.host = host_header.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : host_header.substr(colon);
  }
  if (parsed.host.empty() || parsed.host.size() > 253) return std::nullopt;
  if (!rest.empty()) {
    const auto port = rest[0] == ':' ? ParseInt<std::uint16_t>(rest.substr(1)) : std::nullopt;
    if (!port) return std::nullopt;
    parsed.port = port;
  }
  for (char& c : parsed.host) {
    c = Lower(c);
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                         c == ':' || c == '_';
    if (!allowed) return std::nullopt;
  }
  return parsed;
}

bool IsLoopbackHost(std::string_view host) {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  in_addr v4{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1 &&
         (ntohl(v4.s_addr) >> 24) == 127;
}

bool IsIpAddress(std::string_view host) {
  in_addr v4{};
  in6_addr v6{};
  const std::string text(host);
  return ::inet_pton(AF_INET, text.c_str(), &v4) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &v6) == 1;
}

std::optional<SandboxPort> ParseSandboxHost(std::string_view host) {
  const std::size_t dot = host.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view label = host.substr(0, dot);
  const std::size_t dash = label.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  return ParseSandboxHeaders(label.substr(dash + 1), label.substr(0, dash));
}

std::optional<SandboxPort> ParseSandboxHeaders(std::string_view id, std::string_view port) {
  const std::string_view cut = CutClientId(id);
  const auto number = ParseInt<std::uint16_t>(port);
  if (!number || *number == 0 || !IsSandboxId(cut)) return std::nullopt;
  return SandboxPort{.sandbox_id = std::string(cut), .port = *number};
}

bool IsSandboxId(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

std::string_view CutClientId(std::string_view text) { return text.substr(0, text.find('-')); }

}  // namespace soma::parse
