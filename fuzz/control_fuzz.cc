// SPDX-License-Identifier: Apache-2.0
// Decoding control messages is total, and what decodes has exactly one encoding.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "control/client.h"
#include "control/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const soma::ByteView input(data, size);
  if (const auto request = soma::control::DecodeRequest(input)) {
    const auto again = soma::control::Encode(*request);
    SOMA_CHECK(again && std::ranges::equal(*again, input));
  }
  if (const auto reply = soma::control::DecodeReply(input)) {
    SOMA_CHECK(std::ranges::equal(soma::control::Encode(*reply), input));
  }
  soma::control::Client client;
  (void)client.Ask({.verb = soma::control::Verb::kHello});
  (void)client.Receive(input, 0);
  return 0;
}
