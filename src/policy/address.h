// SPDX-License-Identifier: Apache-2.0
// IP addresses and networks as values, and the classes of address that a sandbox never reaches
// unless a rule names them.
//
// Pure. Text input is foreign: the strict forms only (four decimal parts without leading zeros;
// RFC 4291 text for IPv6, no zone). Sources of the ranges: IANA's IPv4 and IPv6 special-purpose
// address registries (RFC 6890 and successors).
#ifndef SOMA_POLICY_ADDRESS_H_
#define SOMA_POLICY_ADDRESS_H_

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace soma::policy {

// An IPv4 address is held in its IPv4-mapped form (::ffff:a.b.c.d), so that a rule for the one
// matches a socket that spells the other.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  static IpAddress V4(std::uint32_t host_order);
  bool IsV4() const;
  std::uint32_t AsV4() const;  // host order; only when IsV4()
  auto operator<=>(const IpAddress&) const = default;
};

// A network: every address whose first `prefix_bits` (0..128, counted in the mapped form) agree.
struct Cidr {
  IpAddress base;
  std::uint8_t prefix_bits = 128;

  bool Contains(const IpAddress& address) const;
  bool operator==(const Cidr&) const = default;
};

std::optional<IpAddress> ParseIpAddress(std::string_view text);
// "10.0.0.0/8", "fd00::/8" or a bare address. Bits set behind the prefix are an error (nullopt):
// such a rule does not mean what its author thinks.
std::optional<Cidr> ParseCidr(std::string_view text);
std::string FormatAddress(const IpAddress& address);
std::string FormatCidr(const Cidr& cidr);

enum class AddressClass : std::uint8_t {
  kPublic,
  kLoopback,   // 127/8, ::1, and 0.0.0.0/8 and ::, which connect to the host itself
  kPrivate,    // RFC 1918, RFC 6598 shared space, fc00::/7, fec0::/10
  kLinkLocal,  // 169.254/16, fe80::/10
  kMetadata,   // the cloud metadata services: 169.254.169.254, 169.254.170.2, fd00:ec2::254,
               // 168.63.129.16, 100.100.100.200
  kMulticast,  // 224/4, ff00::/8, broadcast
  kReserved,   // documentation, benchmarking, future use, discard
};

// Looks through IPv4-mapped, IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), 6to4 and Teredo
// forms at the IPv4 address inside, so that none of them is a way around.
AddressClass ClassifyAddress(const IpAddress& address);
// The IPv4 address inside such a form (but for the mapped one, which is IPv4); nullopt for others.
std::optional<IpAddress> EmbeddedAddress(const IpAddress& address);
std::string_view AddressClassName(AddressClass address_class);

}  // namespace soma::policy

#endif  // SOMA_POLICY_ADDRESS_H_
