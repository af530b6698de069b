// SPDX-License-Identifier: Apache-2.0
// The journal's readers on hostile bytes. The input is a head file and segment 0, separated by the
// first line that is only "=". Whatever decodes must encode to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/head.h"
#include "audit/verify.h"
#include "base/result.h"

namespace {

void Decode(std::string_view text) {
  using soma::audit::DecodeEvent;
  using soma::audit::DecodeHeadEntry;
  if (const auto event = DecodeEvent(text); event && EncodeEvent(*event) != text) std::abort();
  if (const auto entry = DecodeHeadEntry(text); entry && EncodeHeadEntry(*entry) != text) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  Decode(input);
  const std::size_t split = input.find("\n=\n");
  soma::audit::JournalSource source;
  const std::size_t head_bytes = split == std::string_view::npos ? size : split + 1;
  source.heads = {std::string(input.substr(0, head_bytes))};
  source.listing.segments = {0};
  const std::string segment(split == std::string_view::npos ? "" : input.substr(split + 3));
  source.read_segment = [&](std::uint64_t) { return soma::Result<std::string>(segment); };
  source.is_live = [](std::uint64_t) { return false; };
  (void)soma::audit::VerifySource(source, soma::audit::Digest{});
  (void)soma::audit::ScanChain(segment, 0, [](const soma::audit::Line& line, std::uint64_t) {
    Decode(line.members);
    return std::optional<std::string>();
  });
  return 0;
}
