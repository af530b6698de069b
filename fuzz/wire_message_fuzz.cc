// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message, and as records: what decodes must encode to the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/message.h"
#include "wire/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace soma;
  using namespace soma::wire;
  const ByteView input(data, size);
  if (const auto envelope = Decode(input)) {
    const auto again = Encode(*envelope);
    SOMA_CHECK(again && std::ranges::equal(*again, input));
  }
  RecordReader reader;
  reader.Append(input);
  while (true) {
    const auto record = reader.Next();
    if (!record || !*record) break;
    Bytes out;
    SOMA_CHECK(AppendRecord(**record, out).has_value());
  }
  return 0;
}
