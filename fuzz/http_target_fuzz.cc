// SPDX-License-Identifier: Apache-2.0
// Targets and hosts: whatever is named as a sandbox must be a valid id, and nothing is read beyond
// the input.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/check.h"
#include "parse/http_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = soma::AsText({data, size});
  if (const auto target = soma::parse::ParseTarget(text)) {
    (void)soma::parse::PathSegments(target->path);
    for (const auto& [name, value] : target->query) (void)soma::parse::ParseMetadataFilter(value);
  }
  if (const auto host = soma::parse::ParseHost(text)) {
    if (const auto sandbox = soma::parse::ParseSandboxHost(host->host)) {
      SOMA_CHECK(soma::parse::IsSandboxId(sandbox->sandbox_id) && sandbox->port != 0);
    }
  }
  return 0;
}
