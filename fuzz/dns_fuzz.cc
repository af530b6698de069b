// SPDX-License-Identifier: Apache-2.0
// The DNS reader on hostile bytes. What it accepts has to give an answer that is no longer than a
// datagram without EDNS and that is not itself taken for a query.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "parse/dns.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace soma::parse;
  const auto query = ParseDnsQuery({data, size});
  if (!query) return 0;
  const soma::Bytes answer =
      BuildDnsAnswer(*query, {.address = std::array<std::uint8_t, 4>{198, 18, 0, 1}});
  if (answer.size() > kDnsMessageBytesMax || ParseDnsQuery(answer) || DnsIdOf(answer)) std::abort();
  if (query->name.size() > 253) std::abort();
  return 0;
}
