// SPDX-License-Identifier: Apache-2.0
// The head entry's encoding; head.cc has the file.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain.h"
#include "audit/head.h"
#include "audit/json_text.h"
#include "audit/time_text.h"
#include "base/check.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"

namespace soma::audit {

namespace {
constexpr std::array<std::string_view, 4> kChangeNames = {"open", "mark", "close", "seal"};

std::uint64_t Member(TextReader& in, std::string_view key) {
  in.Expect(StrCat(",\"", key, "\":"));
  return in.Number();
}

std::string NumberList(const std::vector<std::uint64_t>& numbers) {
  std::string out = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) out += ',';
    out += StrCat(numbers[i]);
  }
  out += ']';
  return out;
}

std::vector<std::uint64_t> TakeNumberList(TextReader& in, std::string_view key,
                                          std::size_t count_max) {
  std::vector<std::uint64_t> numbers;
  in.Expect(StrCat(",\"", key, "\":["));
  if (in.Take("]")) return numbers;
  do {
    numbers.push_back(in.Number());
    if (numbers.size() > count_max) in.MarkInvalid();
  } while (in.Take(","));
  in.Expect("]");
  return numbers;
}
}  // namespace

std::string_view ChangeName(HeadChange change) {
  const auto index = static_cast<std::size_t>(change);
  SOMA_CHECK(index < kChangeNames.size());
  return kChangeNames[index];
}

std::string EncodeHeadEntry(const HeadEntry& entry) {
  std::string out =
      StrCat("\"time\":\"", FormatTime(entry.time), "\",\"change\":\"", ChangeName(entry.change),
             "\",\"segment\":", entry.segment, ",\"records\":", entry.records,
             ",\"bytes\":", entry.bytes, ",\"tail\":\"", Hex(entry.tail),
             "\",\"torn\":", entry.torn, ",\"mended\":", entry.mended, ",\"next\":", entry.next,
             ",\"open\":", NumberList(entry.open), ",\"idle\":", NumberList(entry.idle));
  return out;
}

Result<HeadEntry> DecodeHeadEntry(std::string_view members) {
  HeadEntry entry;
  TextReader in(members);
  in.Expect("\"time\":\"");
  const auto time = ParseTime(in.Raw(kTimeTextBytes));
  in.Expect("\",\"change\":");
  const std::string name = in.String(8);
  const auto found = std::find(kChangeNames.begin(), kChangeNames.end(), name);
  entry.segment = Member(in, "segment");
  entry.records = Member(in, "records");
  entry.bytes = Member(in, "bytes");
  in.Expect(",\"tail\":\"");
  const auto tail = ParseDigest(in.Raw(2 * sizeof(Digest)));
  in.Expect("\"");
  entry.torn = Member(in, "torn");
  entry.mended = Member(in, "mended");
  entry.next = Member(in, "next");
  entry.open = TakeNumberList(in, "open", kOpenSegmentsMax);
  entry.idle = TakeNumberList(in, "idle", kIdleSegmentsMax);
  if (!in.AtEnd() || !time || !tail || found == kChangeNames.end()) {
    return Fail(Errc::kInvalidArgument, "not a line of the head file");
  }
  entry.time = *time;
  entry.tail = *tail;
  entry.change = static_cast<HeadChange>(found - kChangeNames.begin());
  return entry;
}

}  // namespace soma::audit
