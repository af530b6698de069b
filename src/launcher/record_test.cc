// SPDX-License-Identifier: Apache-2.0
#include "launcher/record.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "control/messages.h"
#include "launcher/ids.h"

namespace soma::launcher {
namespace {

Record Some() {
  return {.sandbox = *control::SandboxId::Create("abc"),
          .level = control::Level::kEmulated,
          .slot = 5,
          .monitor = {.pid = 1234, .start_ticks = 99}};
}

TEST(Record, RoundTrips) {
  const auto decoded = DecodeRecord(Encode(Some()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, Some());
}

TEST(Record, RefusesCutsTailsAndForeignSlots) {
  Bytes bytes = Encode(Some());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRecord(ByteView(bytes).first(size)));
  }
  bytes.push_back(0);
  EXPECT_FALSE(DecodeRecord(bytes));
  Record record = Some();
  record.slot = kSlotsMax;
  EXPECT_FALSE(DecodeRecord(Encode(record)));
}

TEST(Ids, SlotsDoNotOverlapAndStayInTheirRanges) {
  for (std::uint32_t slot = 0; slot + 1 < kSlotsMax; ++slot) {
    EXPECT_EQ(IdsOfSlot(slot).first + kRangeSize, IdsOfSlot(slot + 1).first);
    EXPECT_LT(IdsOfSlot(slot).outer_root, IdsOfSlot(slot + 1).monitor);
  }
  EXPECT_GE(IdsOfSlot(0).first, kFirstRange);
}

}  // namespace
}  // namespace soma::launcher
