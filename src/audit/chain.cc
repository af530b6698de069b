// SPDX-License-Identifier: Apache-2.0
#include "audit/chain.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "audit/json_text.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "crypto/hash.h"

namespace soma::audit {

namespace {

constexpr std::size_t kHexDigits = 2 * sizeof(Digest);
constexpr std::string_view kHashKey = ",\"hash\":\"";
// `,"hash":"` + digits + `"}`
constexpr std::size_t kSuffixBytes = kHashKey.size() + kHexDigits + 2;

}  // namespace

FramedLine FrameLine(std::uint64_t number, const Digest& previous, std::string_view members) {
  FramedLine line;
  line.text = StrCat("{\"n\":", number, ",\"prev\":\"", Hex(previous), "\",", members);
  line.hash = crypto::Sha256(line.text);
  line.text += kHashKey;
  line.text += Hex(line.hash);
  line.text += "\"}\n";
  return line;
}

std::optional<Digest> ParseDigest(std::string_view hex) {
  const bool lower = hex.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  const auto bytes = ParseHex(hex);
  if (!lower || !bytes || bytes->size() != sizeof(Digest)) return std::nullopt;
  Digest digest;
  std::copy(bytes->begin(), bytes->end(), digest.begin());
  return digest;
}

Result<Line> ParseLine(std::string_view text) {
  const auto malformed = [] { return Fail(Errc::kInvalidArgument, "not a record"); };
  if (text.size() < kSuffixBytes || text.size() > kLineBytesMax) return malformed();
  const std::string_view hashed = text.substr(0, text.size() - kSuffixBytes);
  TextReader suffix(text.substr(hashed.size()));
  suffix.Expect(kHashKey);
  const auto hash = ParseDigest(suffix.Raw(kHexDigits));
  suffix.Expect("\"}");
  if (!suffix.AtEnd() || !hash) return malformed();
  if (crypto::Sha256(hashed) != *hash) {
    return Fail(Errc::kDataLoss, "its bytes do not match its hash: it was changed");
  }
  Line line;
  TextReader in(hashed);
  in.Expect("{\"n\":");
  line.number = in.Number();
  in.Expect(",\"prev\":\"");
  const auto previous = ParseDigest(in.Raw(kHexDigits));
  in.Expect("\",");
  if (!in.ok() || !previous) return malformed();
  line.previous = *previous;
  line.members = in.rest();
  line.hash = *hash;
  return line;
}

ChainSummary ScanChain(std::string_view content, std::uint64_t first_number,
                       const LineVisitor& visit) {
  ChainSummary summary;
  const auto fault = [&](std::string what) {
    summary.fault = ChainFault{first_number + summary.records, summary.bytes, std::move(what)};
    return summary;
  };
  while (summary.bytes < content.size()) {
    const std::string_view rest = content.substr(summary.bytes);
    const std::size_t size = rest.find('\n');
    if (size == std::string_view::npos) {
      summary.torn = rest.size();
      return summary;
    }
    const auto line = ParseLine(rest.substr(0, size));
    if (!line) return fault(line.error().message());
    if (line->number != first_number + summary.records) {
      return fault(StrCat("it says it is record ", line->number,
                          ": records before it are missing or were reordered"));
    }
    if (summary.records == 0) {
      summary.first_previous = line->previous;
    } else if (line->previous != summary.tail) {
      return fault("it does not continue the record before it: one of the two was replaced");
    }
    if (visit) {
      if (auto what = visit(*line, summary.bytes)) return fault(std::move(*what));
    }
    ++summary.records;
    summary.bytes += size + 1;
    summary.tail = line->hash;
  }
  return summary;
}

}  // namespace soma::audit
