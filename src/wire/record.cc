// SPDX-License-Identifier: Apache-2.0
#include "wire/record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "wire/codec.h"
#include "wire/fields.h"
#include "wire/link.h"

namespace soma::wire {
namespace {

constexpr std::size_t kLengthSize = 4;

}  // namespace

Status AppendRecord(const Record& record, Bytes& out) {
  Bytes body;
  body.push_back(static_cast<std::uint8_t>(record.index()));
  FieldWriter writer(body);
  std::visit([&](auto& item) { Fields(writer, item); }, const_cast<Record&>(record));
  if (!writer.ok() || body.size() > kMessageSizeMax) {
    return Fail(Errc::kOutOfRange, "a field of a record is beyond its limit");
  }
  ByteWriter(out).PutString(AsText(body));
  return {};
}

Result<std::optional<Record>> RecordReader::Next() {
  const ByteView pending = ByteView(buffer_).subspan(offset_);
  if (pending.size() < kLengthSize) return std::nullopt;
  const auto size = ByteReader(pending).Get<std::uint32_t>();
  if (size == 0 || size > kMessageSizeMax) {
    return Fail(Errc::kInvalidArgument, "a record of an impossible size");
  }
  if (pending.size() < kLengthSize + size) return std::nullopt;
  const ByteView body = pending.subspan(kLengthSize, size);
  Record record;
  if (!EmplaceAlternative(record, body[0])) {
    return Fail(Errc::kInvalidArgument, "unknown record type");
  }
  FieldReader reader(body.subspan(1));
  std::visit([&](auto& item) { Fields(reader, item); }, record);
  if (!reader.AtEnd()) return Fail(Errc::kInvalidArgument, "malformed record");
  offset_ += kLengthSize + size;
  return record;
}

void RecordReader::Append(ByteView bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(offset_));
  offset_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

}  // namespace soma::wire
