// SPDX-License-Identifier: Apache-2.0
// SandboxRecord: what the server knows about one sandbox and must still know after its own death.
// A plain value; stored as JSON by a SandboxStore.
#ifndef SOMA_SANDBOX_RECORD_H_
#define SOMA_SANDBOX_RECORD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "parse/json.h"
#include "wire/frame.h"

namespace soma::sandbox {

// E2B's `network` object and `allow_internet_access`, as given; egress turns them into rules.
struct NetworkWish {
  std::optional<bool> allow_internet;
  std::vector<std::string> allow_out;
  std::vector<std::string> deny_out;
  // Requests to ports inside need no token.
  bool allow_public_traffic = true;
  std::string mask_request_host;
};

struct SandboxRecord {
  std::string id;      // [a-z0-9]{1,32}
  std::string tenant;  // who owns it; nobody else learns that it exists
  std::string template_id;
  std::string alias;  // the name by which the template was asked for, if it was one
  std::string level;
  parse::StringPairs metadata;
  parse::StringPairs environment;
  NetworkWish network;
  std::string envd_token;          // of the envd face; always there
  std::string traffic_token;       // "" = none
  wire::LinkSecret link_secret{};  // between server and guest
  std::array<std::uint8_t, 32>
      guard_token{};  // between server and monitor; the guest never sees it
  WallTime started_at{};
  WallTime end_at{};
};

std::string EncodeRecord(const SandboxRecord& record);
// kDataLoss for what EncodeRecord did not write.
Result<SandboxRecord> DecodeRecord(std::string_view text);

}  // namespace soma::sandbox

#endif  // SOMA_SANDBOX_RECORD_H_
