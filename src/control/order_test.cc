// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "control/order.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/error.h"
#include "control/messages.h"

namespace soma::control {
namespace {

Order SomeOrder() {
  Order order;
  order.sandbox = *SandboxId::Create("abc");
  order.level = Level::kEmulated;
  order.monitor_uid = 77;
  order.lease_seconds = 5;
  order.token.fill(3);
  order.plan = {1, 2, 3};
  return order;
}

TEST(Order, RoundTrips) {
  const auto decoded = DecodeOrder(*Encode(SomeOrder()));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, SomeOrder());
}

TEST(Order, RefusesEveryCutAndAnyTail) {
  Bytes bytes = *Encode(SomeOrder());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeOrder(ByteView(bytes).first(size))) << size;
  }
  bytes.push_back(0);
  EXPECT_FALSE(DecodeOrder(bytes));
}

TEST(Order, HasBounds) {
  Order order = SomeOrder();
  order.plan.resize(kOrderPlanBytesMax + 1);
  EXPECT_EQ(Encode(order).error().code(), Errc::kOutOfRange);
  order = SomeOrder();
  order.lease_seconds = 0;
  EXPECT_FALSE(Encode(order));
}

}  // namespace
}  // namespace soma::control
