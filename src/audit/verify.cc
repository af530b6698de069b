// SPDX-License-Identifier: Apache-2.0
#include "audit/verify.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/head.h"
#include "audit/layout.h"
#include "audit/opening.h"
#include "base/text.h"

namespace soma::audit {

namespace {

// What the head file says of one segment.
struct Claim {
  struct Entry : HeadEntry {
    Digest head_before{};
  };
  std::vector<Entry> entries;  // in the head file's order
  const HeadEntry& last() const { return entries.back(); }
  bool ended() const {
    return last().change == HeadChange::kClose || last().change == HeadChange::kSeal;
  }
};

class Verifier {
 public:
  explicit Verifier(const JournalSource& source) : source_(source) {}

  VerifyReport Run(const std::optional<Digest>& expected_head) {
    ReadHeads();
    if (expected_head) CheckExpectedHead(*expected_head);
    for (const std::string& name : source_.listing.strangers) {
      Fault({.file = name, .what = "does not belong to a journal"});
    }
    for (const auto& [segment, claim] : claims_) {
      if (std::ranges::binary_search(source_.listing.segments, segment)) continue;
      Fault({.file = SegmentPath(".", segment).substr(2),
             .segment = segment,
             .what = "the segment is missing"});
    }
    for (const std::uint64_t segment : source_.listing.segments) CheckSegment(segment);
    return std::move(report_);
  }

 private:
  void Fault(Finding finding) { report_.faults.push_back(std::move(finding)); }
  void Note(Finding finding) { report_.notes.push_back(std::move(finding)); }

  std::string HeadName(std::size_t index) const {
    if (index + 1 == source_.heads.size()) return "head.jsonl";
    return OldHeadPath(".", source_.listing.old_heads[index]).substr(2);
  }

  std::optional<std::string> TakeHeadLine(const Line& line) {
    auto entry = DecodeHeadEntry(line.members);
    if (!entry) return entry.error().message();
    Claim& claim = claims_[entry->segment];
    if (!claim.entries.empty() && entry->records < claim.last().records) {
      Fault({.file = SegmentPath(".", entry->segment).substr(2),
             .segment = entry->segment,
             .record = entry->records,
             .what = StrCat("records were cut off before line ", line.number,
                            " of the head file was written: it had ", claim.last().records)});
    }
    next_segment_ = std::max(next_segment_, entry->next);
    idle_ = entry->idle;
    claim.entries.push_back({*std::move(entry), line.previous});
    head_hashes_.push_back(line.hash);
    return std::nullopt;
  }

  void ReadHeads() {
    for (std::size_t i = 0; i < source_.heads.size(); ++i) {
      const ChainSummary chain =
          ScanChain(source_.heads[i], report_.head_lines,
                    [&](const Line& line, std::uint64_t) { return TakeHeadLine(line); });
      const bool continues = chain.records == 0 || chain.first_previous == report_.head;
      if (!continues) {
        Fault({.file = HeadName(i),
               .record = report_.head_lines,
               .byte_offset = 0,
               .what = "it does not continue the part before it"});
      }
      if (chain.fault) {
        Fault({.file = HeadName(i),
               .record = chain.fault->record,
               .byte_offset = chain.fault->byte_offset,
               .what = chain.fault->what});
      } else if (chain.torn > 0) {
        Note({.file = HeadName(i),
              .record = report_.head_lines + chain.records,
              .byte_offset = chain.bytes,
              .what = StrCat("a line was torn by its writer's death (", chain.torn, " bytes)")});
      }
      report_.head_lines += chain.records;
      if (chain.records > 0) report_.head = chain.tail;
    }
  }

  void CheckExpectedHead(const Digest& expected) {
    if (std::ranges::find(head_hashes_, expected) != head_hashes_.end()) return;
    Fault({.file = "head.jsonl",
           .record = report_.head_lines,
           .what = StrCat("the head ", Hex(expected),
                          " is not in it: its end was cut off, or the journal was rewritten")});
  }

  // What the head file claims about one record; text when it does not hold.
  static std::optional<std::string> CheckClaims(const Claim& claim, std::size_t& next,
                                                const Line& line, const Event& event) {
    for (; next < claim.entries.size() && claim.entries[next].records <= line.number + 1; ++next) {
      const Claim::Entry& entry = claim.entries[next];
      if (entry.records <= line.number) continue;
      if (entry.tail != line.hash) return "the head file has another hash for it: it was replaced";
      if (entry.change == HeadChange::kOpen && !Opens(event, entry.head_before)) {
        return "a segment was opened here, but it does not continue the head of that time";
      }
    }
    return std::nullopt;
  }

  static bool IsOpening(const Event& event) {
    return event.kind == EventKind::kJournal && event.subject == kOpeningSubject;
  }
  static bool Opens(const Event& event, const Digest& head) {
    if (!IsOpening(event)) return false;
    const auto field = std::ranges::find(event.fields, kOpeningHeadField, [](const auto& pair) {
      return std::string_view(pair.first);
    });
    return field != event.fields.end() && field->second == Hex(head);
  }

  void CheckSegment(std::uint64_t segment) {
    ++report_.segments;
    const std::string file = SegmentPath(".", segment).substr(2);
    const auto content = source_.read_segment(segment);
    if (!content) {
      return Fault({.file = file, .segment = segment, .what = content.error().message()});
    }
    const auto found = claims_.find(segment);
    const Claim* claim = found == claims_.end() ? nullptr : &found->second;
    std::size_t next = 0;
    bool ends_with_opening = false;
    const ChainSummary chain =
        ScanChain(*content, 0, [&](const Line& line, std::uint64_t) -> std::optional<std::string> {
          const auto event = DecodeEvent(line.members);
          if (!event) return event.error().message();
          ends_with_opening = IsOpening(*event);
          return claim == nullptr ? std::nullopt : CheckClaims(*claim, next, line, *event);
        });
    report_.records += chain.records;
    if (chain.fault) {
      return Fault({.file = file,
                    .segment = segment,
                    .record = chain.fault->record,
                    .byte_offset = chain.fault->byte_offset,
                    .what = chain.fault->what});
    }
    if (chain.records > 0 && chain.first_previous != Digest{}) {
      return Fault({.file = file,
                    .segment = segment,
                    .record = 0,
                    .byte_offset = 0,
                    .what = "records before the first one are missing"});
    }
    CheckEnd(segment, file, claim, chain, ends_with_opening);
  }

  void CheckEnd(std::uint64_t segment, const std::string& file, const Claim* claim,
                const ChainSummary& chain, bool ends_with_opening) {
    const auto at_end = [&](std::string what) {
      return Finding{.file = file,
                     .segment = segment,
                     .record = chain.records,
                     .byte_offset = chain.bytes,
                     .what = std::move(what)};
    };
    if (claim == nullptr) {
      // Made, but its writer died before the head file's line about it: then it has one record.
      const bool crash = segment == next_segment_ && chain.records <= 1;
      if (crash) return Note(at_end("its writer died before the head file knew of it"));
      return Fault(at_end("the head file does not know it: the head file was cut or replaced"));
    }
    const HeadEntry& last = claim->last();
    if (chain.records < last.records) {
      return Fault(at_end(StrCat("its end was cut off: the head file says ", last.records,
                                 " records, here are ", chain.records)));
    }
    if (!claim->ended()) {
      if (chain.torn > 0 && !source_.is_live(segment)) {
        Note(at_end(StrCat("a record was torn by its writer's death (", chain.torn, " bytes)")));
      }
      return;
    }
    // An idle segment whose next writer died in its opening, before the head file's line.
    const bool idle = std::ranges::find(idle_, segment) != idle_.end();
    const bool opening = idle && ends_with_opening && chain.records == last.records + 1;
    if (chain.records > last.records && !opening) {
      return Fault(at_end(
          StrCat("it goes on after its end: the head file says ", last.records, " records")));
    }
    if (idle && (opening || chain.torn > 0)) {
      return Note(at_end("a writer died while it opened the segment"));
    }
    if (chain.torn != last.torn) {
      return Fault(at_end("bytes were added or removed after its last record"));
    }
    if (last.torn > 0) {
      Note(at_end(StrCat("a record was torn by its writer's death (", last.torn, " bytes)")));
    }
  }

  const JournalSource& source_;
  VerifyReport report_;
  std::map<std::uint64_t, Claim> claims_;
  std::vector<Digest> head_hashes_;
  std::vector<std::uint64_t> idle_;
  std::uint64_t next_segment_ = 0;
};

}  // namespace

VerifyReport VerifySource(const JournalSource& source, const std::optional<Digest>& expected_head) {
  return Verifier(source).Run(expected_head);
}

}  // namespace soma::audit
