// SPDX-License-Identifier: Apache-2.0
#include "parse/dns.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"

namespace soma::parse {

namespace {

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kLabelBytesMax = 63;
constexpr std::size_t kNameBytesMax = 255;  // on the wire, with the root's zero

// The header's second word.
constexpr std::uint16_t kResponse = 0x8000;
constexpr std::uint16_t kOpcodeMask = 0x7800;
constexpr std::uint16_t kTruncated = 0x0200;
constexpr std::uint16_t kRecursionDesired = 0x0100;
constexpr std::uint16_t kRecursionAvailable = 0x0080;

std::uint16_t Big16(ByteReader& in) {
  const ByteView raw = in.GetRaw(2);
  return in.ok() ? static_cast<std::uint16_t>(raw[0] << 8 | raw[1]) : 0;
}

void PutBig16(Bytes& out, std::uint16_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

void PutBig32(Bytes& out, std::uint32_t value) {
  PutBig16(out, static_cast<std::uint16_t>(value >> 16));
  PutBig16(out, static_cast<std::uint16_t>(value));
}

char LabelCharacter(std::uint8_t byte) {
  if (byte >= 'A' && byte <= 'Z') return static_cast<char>(byte - 'A' + 'a');
  const bool plain =
      (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
  return plain ? static_cast<char>(byte) : '?';
}

// Reads a name in plain form; a compression pointer in the only question has nothing to point to.
std::string ReadName(ByteReader& in) {
  std::string name;
  std::size_t wire_bytes = 1;
  while (in.ok()) {
    const auto size = in.Get<std::uint8_t>();
    if (size == 0) break;
    wire_bytes += size + std::size_t{1};
    if (size > kLabelBytesMax || wire_bytes > kNameBytesMax) {
      in.MarkInvalid();
      break;
    }
    if (!name.empty()) name += '.';
    for (const std::uint8_t byte : in.GetRaw(size)) name += LabelCharacter(byte);
  }
  return name;
}

// The counts of answer, authority and additional records follow the question's.
void PutHeader(Bytes& out, std::uint16_t id, std::uint16_t flags, std::uint16_t questions,
               std::uint16_t answers) {
  PutBig16(out, id);
  PutBig16(out, flags);
  PutBig16(out, questions);
  PutBig16(out, answers);
  PutBig32(out, 0);
}

}  // namespace

Result<DnsQuery> ParseDnsQuery(ByteView message) {
  ByteReader in(message);
  DnsQuery query;
  query.id = Big16(in);
  const std::uint16_t flags = Big16(in);
  const std::uint16_t questions = Big16(in);
  const std::uint16_t answers = Big16(in);
  (void)in.GetRaw(4);
  if (!in.ok() || (flags & (kResponse | kOpcodeMask | kTruncated)) != 0 || questions != 1 ||
      answers != 0) {
    return Fail(Errc::kInvalidArgument, "not a DNS query with one question");
  }
  query.recursion_desired = (flags & kRecursionDesired) != 0;
  query.name = ReadName(in);
  query.type = Big16(in);
  query.class_number = Big16(in);
  if (!in.ok()) return Fail(Errc::kInvalidArgument, "a cut or overlong DNS question");
  const ByteView question =
      message.subspan(kHeaderBytes, message.size() - in.remaining() - kHeaderBytes);
  query.question.assign(question.begin(), question.end());
  return query;
}

std::optional<std::uint16_t> DnsIdOf(ByteView message) {
  ByteReader in(message);
  const std::uint16_t id = Big16(in);
  const std::uint16_t flags = Big16(in);
  if (!in.ok() || (flags & kResponse) != 0) return std::nullopt;
  return id;
}

Bytes BuildDnsAnswer(const DnsQuery& query, const DnsAnswer& answer) {
  Bytes out;
  const bool has_address = answer.code == DnsCode::kNoError && answer.address.has_value();
  const auto flags = static_cast<std::uint16_t>(kResponse | kRecursionAvailable |
                                                (query.recursion_desired ? kRecursionDesired : 0) |
                                                static_cast<std::uint16_t>(answer.code));
  PutHeader(out, query.id, flags, 1, has_address ? 1 : 0);
  out.insert(out.end(), query.question.begin(), query.question.end());
  if (!has_address) return out;
  // The owner's name: a pointer to the question, which begins right after the header.
  PutBig16(out, static_cast<std::uint16_t>(0xc000 | kHeaderBytes));
  PutBig16(out, kDnsTypeA);
  PutBig16(out, kDnsClassInternet);
  PutBig32(out, answer.ttl_seconds);
  PutBig16(out, static_cast<std::uint16_t>(answer.address->size()));
  out.insert(out.end(), answer.address->begin(), answer.address->end());
  return out;
}

Bytes BuildDnsFormatError(std::uint16_t id) {
  Bytes out;
  PutHeader(out, id, kResponse | static_cast<std::uint16_t>(DnsCode::kFormatError), 0, 0);
  return out;
}

}  // namespace soma::parse
