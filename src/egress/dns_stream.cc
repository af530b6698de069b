// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "aio/stream.h"
#include "aio/task.h"
#include "base/bytes.h"
#include "base/result.h"
#include "egress/broker.h"
#include "parse/dns.h"

namespace soma::egress {

namespace {

constexpr std::chrono::seconds kDnsIdle(10);

// All of `out`; false when the stream ended or failed before.
aio::Task<bool> ReadFull(aio::ByteStream& stream, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    SOMA_CO_ASSIGN(const std::size_t size, co_await stream.Read(out));
    if (size == 0) co_return false;
    out = out.subspan(size);
  }
  co_return true;
}

// One query with its two bytes of length (RFC 1035 4.2.2); false ends the
// connection.
aio::Task<bool> AnswerOne(Broker& broker, aio::ByteStream& stream) {
  std::uint8_t length[2];
  SOMA_CO_ASSIGN(const bool begun, co_await ReadFull(stream, length));
  if (!begun) co_return false;
  Bytes query(static_cast<std::size_t>(length[0]) << 8 | length[1]);
  if (query.size() > parse::kDnsMessageBytesMax) co_return false;
  SOMA_CO_ASSIGN(const bool whole, co_await ReadFull(stream, query));
  if (!whole) co_return false;
  Bytes answer = broker.Answer(query);
  if (answer.empty()) co_return false;
  const std::uint8_t size[2] = {static_cast<std::uint8_t>(answer.size() >> 8),
                                static_cast<std::uint8_t>(answer.size())};
  answer.insert(answer.begin(), size, size + 2);
  SOMA_CO_TRY(co_await stream.Write(answer));
  co_return true;
}

}  // namespace

aio::Task<void> ServeDnsStream(Broker& broker, aio::ByteStream& stream) {
  for (;;) {
    stream.SetReadDeadline(kDnsIdle);
    stream.SetWriteDeadline(kDnsIdle);
    const Result<bool> answered = co_await AnswerOne(broker, stream);
    if (!answered || !*answered) break;
  }
  stream.Close();
  co_return Status();
}

}  // namespace soma::egress
