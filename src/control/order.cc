// SPDX-License-Identifier: Apache-2.0
#include "control/order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "control/messages.h"

namespace soma::control {
namespace {

constexpr std::uint32_t kOrderMagic = 0x4f4d4f53;  // "SOMO"

bool Valid(const Order& order) {
  return !order.sandbox.empty() && order.lease_seconds > 0 &&
         order.lease_seconds <= kLeaseSecondsMax && order.plan.size() <= kOrderPlanBytesMax;
}

}  // namespace

Result<Bytes> Encode(const Order& order) {
  if (!Valid(order)) return Fail(Errc::kOutOfRange, "an order is out of its bounds");
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.Put(kOrderMagic);
  writer.PutString(order.sandbox.text());
  writer.Put(std::to_underlying(order.level));
  writer.Put(order.monitor_uid);
  writer.Put(order.launcher_uid);
  writer.Put(order.server_uid);
  writer.Put(order.lease_seconds);
  writer.PutRaw(order.token);
  writer.PutString(AsText(order.plan));
  return bytes;
}

Result<Order> DecodeOrder(ByteView packet) {
  ByteReader reader(packet);
  if (reader.Get<std::uint32_t>() != kOrderMagic) reader.MarkInvalid();
  constexpr std::size_t kSandboxIdBytesMax = 32;
  const std::string sandbox = reader.GetString(kSandboxIdBytesMax);
  const auto level = reader.Get<std::uint8_t>();
  Order order;
  order.monitor_uid = reader.Get<std::uint32_t>();
  order.launcher_uid = reader.Get<std::uint32_t>();
  order.server_uid = reader.Get<std::uint32_t>();
  order.lease_seconds = reader.Get<std::uint32_t>();
  std::ranges::copy(reader.GetRaw(reader.ok() ? order.token.size() : 0), order.token.begin());
  const std::string plan = reader.GetString(kOrderPlanBytesMax);
  if (!reader.AtEnd() || level < std::to_underlying(Level::kContainer) ||
      level > std::to_underlying(Level::kMicrovm)) {
    return Fail(Errc::kInvalidArgument, "an order is malformed");
  }
  order.level = static_cast<Level>(level);
  SOMA_ASSIGN(order.sandbox, SandboxId::Create(sandbox));
  order.plan.assign(plan.begin(), plan.end());
  if (!Valid(order)) return Fail(Errc::kInvalidArgument, "an order is out of its bounds");
  return order;
}

}  // namespace soma::control
