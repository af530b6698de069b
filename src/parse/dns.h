// SPDX-License-Identifier: Apache-2.0
// DNS messages (RFC 1035, RFC 6891) as far as a resolver inside a sandbox needs them: reads one
// question, writes an answer with at most one address. Without I/O. Reads hostile bytes.
#ifndef SOMA_PARSE_DNS_H_
#define SOMA_PARSE_DNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace soma::parse {

// RFC 1035 2.3.4. A message over UDP without EDNS has at most 512 bytes; our answers stay below.
inline constexpr std::size_t kDnsMessageBytesMax = 512;

// RFC 1035 3.2.2, RFC 3596.
inline constexpr std::uint16_t kDnsTypeA = 1;
inline constexpr std::uint16_t kDnsTypeAaaa = 28;
inline constexpr std::uint16_t kDnsClassInternet = 1;

enum class DnsCode : std::uint8_t {
  kNoError = 0,
  kFormatError = 1,
  kServerFailure = 2,
  kNameError = 3,  // NXDOMAIN
  kNotImplemented = 4,
  kRefused = 5,
};

struct DnsQuery {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  // Labels joined by dots, lower case, without the last dot; "" for the root. A byte other than
  // a-z, 0-9, '-' and '_' is '?', which is in no host name.
  std::string name;
  std::uint16_t type = 0;
  std::uint16_t class_number = 0;
  // The question as it was sent, for the answer: resolvers compare even its letters' case.
  Bytes question;
};

// Exactly one standard query with one question. kInvalidArgument for everything else: answers,
// updates, compressed or overlong names, cut messages. Records behind the question (EDNS) are not
// looked at.
Result<DnsQuery> ParseDnsQuery(ByteView message);

// The header's id of a message that ParseDnsQuery refused, to answer it with kFormatError; nullopt
// when it should not be answered: too short, or an answer itself (two resolvers would never stop).
std::optional<std::uint16_t> DnsIdOf(ByteView message);

struct DnsAnswer {
  DnsCode code = DnsCode::kNoError;
  // For a question of type A; without it an answer of kNoError says: no such data.
  std::optional<std::array<std::uint8_t, 4>> address;
  std::uint32_t ttl_seconds = 0;
};

Bytes BuildDnsAnswer(const DnsQuery& query, const DnsAnswer& answer);
// An answer to what could not be read.
Bytes BuildDnsFormatError(std::uint16_t id);

}  // namespace soma::parse

#endif  // SOMA_PARSE_DNS_H_
