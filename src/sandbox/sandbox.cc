// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandbox.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "aio/loop.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "parse/base64.h"
#include "runtime/guest_link.h"
#include "runtime/runtime.h"
#include "sandbox/egress_gate.h"
#include "sandbox/record.h"

namespace soma::sandbox {

Sandbox::Sandbox(aio::Loop& loop, SandboxRecord record,
                 std::unique_ptr<runtime::SandboxHandle> handle, std::unique_ptr<EgressGate> gate,
                 std::unique_ptr<runtime::GuestLink> link)
    : record_(std::move(record)),
      handle_(std::move(handle)),
      gate_(std::move(gate)),
      link_(std::move(link)),
      deadline_changed_(loop) {}

Sandbox::~Sandbox() = default;

bool Sandbox::EnvdTokenMatches(std::string_view token) const {
  return !record_.envd_token.empty() &&
         crypto::EqualInConstantTime(AsBytes(record_.envd_token), AsBytes(token));
}

bool Sandbox::TrafficTokenMatches(std::string_view token) const {
  return record_.traffic_token.empty() ||
         crypto::EqualInConstantTime(AsBytes(record_.traffic_token), AsBytes(token));
}

Status Sandbox::CheckSignature(const FileSignature& claim, WallTime now) const {
  std::string text =
      StrCat(claim.path, ":", claim.operation, ":", claim.user, ":", record_.envd_token);
  if (claim.expiry) text += StrCat(":", *claim.expiry);
  std::string encoded = parse::Base64Encode(crypto::Sha256(text));
  while (encoded.ends_with('=')) encoded.pop_back();
  if (!crypto::EqualInConstantTime(AsBytes(StrCat("v1_", encoded)), AsBytes(claim.signature))) {
    return Fail(Errc::kUnauthenticated, "invalid signature");
  }
  if (!claim.expiry) return {};
  const auto seconds = ParseInt<std::int64_t>(*claim.expiry);
  if (!seconds || WallTime(std::chrono::seconds(*seconds)) < now) {
    return Fail(Errc::kUnauthenticated, "signature is already expired");
  }
  return {};
}

}  // namespace soma::sandbox
