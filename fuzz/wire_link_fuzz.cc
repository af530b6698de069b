// SPDX-License-Identifier: Apache-2.0
// Raw bytes into a guest's Link, and into a host's Link that waits for its HELLO_ACK: the first
// byte picks the side. Neither may hold more than it is allowed to.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/link.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace soma;
  using namespace soma::wire;
  if (size == 0) return 0;
  const Role role = (data[0] & 1) == 0 ? Role::kGuest : Role::kHost;
  const ByteView input = ByteView(data, size).subspan(1);
  Link link(role);
  if (role == Role::kHost) link.Hello({.epoch = 1});
  for (std::size_t at = 0; at < input.size(); at += kInputMax) {
    link.OnBytes(input.subspan(at, std::min(kInputMax, input.size() - at)));
    while (auto event = link.Next()) {
      SOMA_CHECK(event->message.size() <= kMessageSizeMax);
      // An echo, so that the sending side works as well.
      if (!event->message.empty()) link.Send(std::move(event->message));
    }
    while (!link.Output().empty()) link.Wrote(link.Output().size());
    SOMA_CHECK(link.in_flight_bytes() <= kWindowBytes);
  }
  return 0;
}
