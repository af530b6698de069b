// SPDX-License-Identifier: Apache-2.0
#include "policy/address.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace soma::policy {

namespace {

constexpr std::size_t kMappedPrefixBytes = 12;
constexpr std::size_t kAddressTextMax = 45;  // INET6_ADDRSTRLEN - 1

std::optional<std::uint32_t> ParseV4(std::string_view text) {
  std::uint32_t value = 0;
  const auto parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  for (const std::string_view part : parts) {
    // A leading zero is octal to some readers and decimal to others.
    if (part.size() > 3 || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    const auto number = ParseInt<std::uint8_t>(part);
    if (!number) return std::nullopt;
    value = value << 8 | *number;
  }
  return value;
}

std::optional<std::uint16_t> ParseGroup(std::string_view text) {
  if (text.empty() || text.size() > 4) return std::nullopt;
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The groups of one side of "::"; a trailing dotted quad counts as two.
struct Groups {
  std::array<std::uint16_t, 8> values{};
  std::size_t count = 0;
  bool Add(std::uint16_t value) {
    if (count == values.size()) return false;
    values[count++] = value;
    return true;
  }
};

std::optional<Groups> ParseGroups(std::string_view text, bool may_end_in_v4) {
  Groups groups;
  if (text.empty()) return groups;
  const auto parts = Split(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (may_end_in_v4 && i + 1 == parts.size() && parts[i].contains('.')) {
      const auto v4 = ParseV4(parts[i]);
      if (!v4 || !groups.Add(static_cast<std::uint16_t>(*v4 >> 16)) ||
          !groups.Add(static_cast<std::uint16_t>(*v4))) {
        return std::nullopt;
      }
      continue;
    }
    const auto group = ParseGroup(parts[i]);
    if (!group || !groups.Add(*group)) return std::nullopt;
  }
  return groups;
}

std::optional<IpAddress> ParseV6(std::string_view text) {
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  if (has_gap && text.find("::", gap + 1) != std::string_view::npos) return std::nullopt;
  const auto head = ParseGroups(has_gap ? text.substr(0, gap) : text, !has_gap);
  const auto tail = ParseGroups(has_gap ? text.substr(gap + 2) : std::string_view(), true);
  if (!head || !tail) return std::nullopt;
  const std::size_t total = head->count + tail->count;
  if (has_gap ? total > 7 : total != 8) return std::nullopt;
  IpAddress out;
  const auto put = [&out](std::size_t index, std::uint16_t value) {
    out.bytes[2 * index] = static_cast<std::uint8_t>(value >> 8);
    out.bytes[2 * index + 1] = static_cast<std::uint8_t>(value);
  };
  for (std::size_t i = 0; i < head->count; ++i) put(i, head->values[i]);
  for (std::size_t i = 0; i < tail->count; ++i) put(8 - tail->count + i, tail->values[i]);
  return out;
}

struct ClassRow {
  Cidr cidr;
  AddressClass address_class;
};

consteval IpAddress V6Prefix(std::uint16_t first, std::uint16_t second, std::uint16_t third = 0,
                             std::uint16_t last = 0) {
  IpAddress out;
  const auto put = [&out](std::size_t index, std::uint16_t value) {
    out.bytes[index] = static_cast<std::uint8_t>(value >> 8);
    out.bytes[index + 1] = static_cast<std::uint8_t>(value);
  };
  put(0, first);
  put(2, second);
  put(4, third);
  put(14, last);
  return out;
}

consteval ClassRow V4Row(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d,
                         std::uint8_t bits, AddressClass address_class) {
  IpAddress base;
  base.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
  return {{base, static_cast<std::uint8_t>(96 + bits)}, address_class};
}

consteval ClassRow V6Row(IpAddress base, std::uint8_t bits, AddressClass address_class) {
  return {{base, bits}, address_class};
}

// The first row that contains an address decides: single hosts stand before their networks.
using enum AddressClass;
constexpr std::array kClasses = {
    V4Row(169, 254, 169, 254, 32, kMetadata),
    V4Row(169, 254, 170, 2, 32, kMetadata),
    V4Row(168, 63, 129, 16, 32, kMetadata),
    V4Row(100, 100, 100, 200, 32, kMetadata),
    V6Row(V6Prefix(0xfd00, 0x0ec2, 0, 0x0254), 128, kMetadata),
    V4Row(0, 0, 0, 0, 8, kLoopback),
    V4Row(127, 0, 0, 0, 8, kLoopback),
    V4Row(10, 0, 0, 0, 8, kPrivate),
    V4Row(100, 64, 0, 0, 10, kPrivate),
    V4Row(172, 16, 0, 0, 12, kPrivate),
    V4Row(192, 168, 0, 0, 16, kPrivate),
    V4Row(169, 254, 0, 0, 16, kLinkLocal),
    V4Row(192, 0, 0, 0, 24, kReserved),
    V4Row(192, 0, 2, 0, 24, kReserved),
    V4Row(192, 88, 99, 0, 24, kReserved),
    V4Row(198, 18, 0, 0, 15, kReserved),
    V4Row(198, 51, 100, 0, 24, kReserved),
    V4Row(203, 0, 113, 0, 24, kReserved),
    V4Row(224, 0, 0, 0, 4, kMulticast),
    V4Row(255, 255, 255, 255, 32, kMulticast),
    V4Row(240, 0, 0, 0, 4, kReserved),
    V6Row(IpAddress{}, 128, kLoopback),           // ::
    V6Row(V6Prefix(0, 0, 0, 1), 128, kLoopback),  // ::1
    V6Row(V6Prefix(0xfc00, 0), 7, kPrivate),
    V6Row(V6Prefix(0xfec0, 0), 10, kPrivate),
    V6Row(V6Prefix(0xfe80, 0), 10, kLinkLocal),
    V6Row(V6Prefix(0xff00, 0), 8, kMulticast),
    V6Row(V6Prefix(0x0100, 0), 64, kReserved),
    V6Row(V6Prefix(0x2001, 0x0002), 48, kReserved),
    V6Row(V6Prefix(0x2001, 0x0db8), 32, kReserved),
    V6Row(V6Prefix(0x3fff, 0), 20, kReserved),
};

struct Embedding {
  Cidr cidr;
  std::size_t offset;    // of the IPv4 address
  std::uint8_t flipped;  // Teredo stores the client's address with all bits inverted
};
constexpr std::array<Embedding, 5> kEmbeddings = {{
    {{IpAddress{}, 96}, 12, 0},                       // IPv4-compatible, deprecated
    {{V6Prefix(0x0064, 0xff9b), 96}, 12, 0},          // NAT64, RFC 6052
    {{V6Prefix(0x0064, 0xff9b, 0x0001), 48}, 12, 0},  // local NAT64, RFC 8215
    {{V6Prefix(0x2002, 0), 16}, 2, 0},                // 6to4, RFC 3056
    {{V6Prefix(0x2001, 0), 32}, 12, 0xff},            // Teredo, RFC 4380
}};

IpAddress Embedded(const IpAddress& address, const Embedding& embedding) {
  IpAddress out = IpAddress::V4(0);
  for (std::size_t i = 0; i < 4; ++i) {
    out.bytes[kMappedPrefixBytes + i] = address.bytes[embedding.offset + i] ^ embedding.flipped;
  }
  return out;
}

}  // namespace

IpAddress IpAddress::V4(std::uint32_t host_order) {
  IpAddress out;
  out.bytes[10] = out.bytes[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i) {
    out.bytes[15 - i] = static_cast<std::uint8_t>(host_order >> (8 * i));
  }
  return out;
}

bool IpAddress::IsV4() const {
  const IpAddress mapped = V4(0);
  return std::equal(bytes.begin(), bytes.begin() + kMappedPrefixBytes, mapped.bytes.begin());
}

std::uint32_t IpAddress::AsV4() const {
  std::uint32_t value = 0;
  for (std::size_t i = kMappedPrefixBytes; i < bytes.size(); ++i) value = value << 8 | bytes[i];
  return value;
}

bool Cidr::Contains(const IpAddress& address) const {
  for (std::size_t i = 0; i < base.bytes.size(); ++i) {
    if (prefix_bits <= 8 * i) return true;
    const std::size_t bits = std::min<std::size_t>(8, prefix_bits - 8 * i);
    const auto mask = static_cast<std::uint8_t>(0xff00 >> bits);
    if ((base.bytes[i] & mask) != (address.bytes[i] & mask)) return false;
  }
  return true;
}

std::optional<IpAddress> ParseIpAddress(std::string_view text) {
  if (text.size() > kAddressTextMax) return std::nullopt;
  if (text.contains(':')) return ParseV6(text);
  const auto v4 = ParseV4(text);
  if (!v4) return std::nullopt;
  return IpAddress::V4(*v4);
}

std::optional<Cidr> ParseCidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = ParseIpAddress(text.substr(0, slash));
  if (!base) return std::nullopt;
  Cidr out{*base, 128};
  if (slash == std::string_view::npos) return out;
  // Written as IPv4, the prefix counts from the mapped part on.
  const bool is_v4 = !text.substr(0, slash).contains(':');
  const auto bits = ParseInt<std::uint8_t>(text.substr(slash + 1));
  if (!bits || *bits > (is_v4 ? 32 : 128)) return std::nullopt;
  out.prefix_bits = static_cast<std::uint8_t>(*bits + (is_v4 ? 96 : 0));
  for (std::size_t i = 0; i < out.base.bytes.size(); ++i) {
    const std::size_t kept =
        out.prefix_bits <= 8 * i ? 0 : std::min<std::size_t>(8, out.prefix_bits - 8 * i);
    if ((out.base.bytes[i] & (0xff >> kept)) != 0) return std::nullopt;
  }
  return out;
}

std::string FormatAddress(const IpAddress& address) {
  if (address.IsV4()) {
    const std::uint32_t value = address.AsV4();
    return StrCat(value >> 24, ".", value >> 16 & 0xff, ".", value >> 8 & 0xff, ".", value & 0xff);
  }
  std::array<std::uint16_t, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) {
    groups[i] = static_cast<std::uint16_t>(address.bytes[2 * i] << 8 | address.bytes[2 * i + 1]);
  }
  // RFC 5952: the longest run of at least two zero groups becomes "::", the first of equals.
  std::size_t best = 8;
  std::size_t best_length = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t length = 0;
    while (i + length < 8 && groups[i + length] == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (!out.empty() && !out.ends_with(':')) out += ':';
    std::array<char, 4> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), groups[i], 16).ptr;
    out.append(digits.data(), end);
  }
  return out;
}

std::string FormatCidr(const Cidr& cidr) {
  const std::string base = FormatAddress(cidr.base);
  if (cidr.prefix_bits == 128) return base;
  if (cidr.base.IsV4() && cidr.prefix_bits >= 96) return StrCat(base, "/", cidr.prefix_bits - 96);
  return StrCat(base, "/", static_cast<int>(cidr.prefix_bits));
}

AddressClass ClassifyAddress(const IpAddress& address) {
  for (const ClassRow& row : kClasses) {
    if (row.cidr.Contains(address)) return row.address_class;
  }
  if (const auto inner = EmbeddedAddress(address)) return ClassifyAddress(*inner);
  // Whatever is not global unicast (2000::/3) and not IPv4 has no business on a wire.
  if (!address.IsV4() && (address.bytes[0] >> 5) != 1) return kReserved;
  return kPublic;
}

std::optional<IpAddress> EmbeddedAddress(const IpAddress& address) {
  for (const Embedding& embedding : kEmbeddings) {
    if (embedding.cidr.Contains(address)) return Embedded(address, embedding);
  }
  return std::nullopt;
}

std::string_view AddressClassName(AddressClass address_class) {
  constexpr std::array<std::string_view, 7> kNames = {
      "public", "loopback", "private", "link-local", "metadata", "multicast", "reserved"};
  return kNames[static_cast<std::size_t>(address_class)];
}

}  // namespace soma::policy
