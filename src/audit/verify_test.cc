// SPDX-License-Identifier: Apache-2.0
#include "audit/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/journal.h"
#include "audit/journal_fixture_test.h"
#include "audit/layout.h"
#include "audit/recorder.h"
#include "base/result.h"

namespace soma::audit {
namespace {

// Two closed segments of three records each, read into memory.
class VerifyTest : public JournalTest {
 protected:
  void SetUp() override {
    JournalTest::SetUp();
    {
      const auto first = Open("r1");
      const auto second = Open("r2");
      for (const char* object : {"a", "b"}) {
        ASSERT_TRUE(first->Record(Refusal(object), Durability::kSoon));
        ASSERT_TRUE(second->Record(Refusal(object), Durability::kSoon));
      }
    }
    head = Read(HeadPath(directory));
    for (std::uint64_t n = 0; n < 2; ++n) segments.push_back(Read(SegmentPath(directory, n)));
  }

  VerifyReport Check(const std::optional<Digest>& expected = std::nullopt) const {
    JournalSource source;
    for (std::uint64_t n = 0; n < segments.size(); ++n) source.listing.segments.push_back(n);
    source.heads = {head};
    source.read_segment = [&](std::uint64_t n) { return Result<std::string>(segments[n]); };
    source.is_live = [](std::uint64_t) { return false; };
    return VerifySource(source, expected);
  }

  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      lines.push_back(text.substr(at, end - at));
      at = end;
    }
    return lines;
  }

  std::string head;
  std::vector<std::string> segments;
};

TEST_F(VerifyTest, AcceptsAnUntouchedJournal) {
  const VerifyReport report = Check();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_TRUE(report.notes.empty()) << Words(report);
  EXPECT_EQ(report.records, 6U);
}

// The property: no single changed byte, anywhere, to any of a few values, goes unseen; and the
// finding names the segment and the record that was touched.
TEST_F(VerifyTest, EveryChangedByteOfASegmentIsNamed) {
  const std::string good = segments[1];
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      segments[1][i] = static_cast<char>(good[i] ^ flip);
      const VerifyReport report = Check();
      ASSERT_FALSE(report.ok()) << "byte " << i;
      const Finding& fault = report.faults[0];
      EXPECT_EQ(fault.segment, 1U);
      const auto begins = good.begin();
      const auto touched = std::count(begins, begins + static_cast<std::ptrdiff_t>(i), '\n');
      EXPECT_EQ(fault.record, static_cast<std::uint64_t>(touched)) << Words(report);
    }
    segments[1][i] = good[i];
  }
}

TEST_F(VerifyTest, EveryChangedByteOfTheHeadIsFound) {
  const std::string good = head;
  // Without its last newline the last line counts as torn, which a crash explains.
  for (std::size_t i = 0; i + 1 < good.size(); ++i) {
    head[i] = static_cast<char>(good[i] ^ 0x01);
    EXPECT_FALSE(Check().ok()) << "byte " << i;
    head[i] = good[i];
  }
}

TEST_F(VerifyTest, RemovingOrReorderingAnyRecordIsFound) {
  const std::vector<std::string> lines = Lines(segments[0]);
  ASSERT_EQ(lines.size(), 3U);
  segments[0] = lines[0] + lines[2];
  ASSERT_FALSE(Check().ok());
  EXPECT_EQ(Check().faults[0].record, 1U);
  segments[0] = lines[0] + lines[2] + lines[1];
  EXPECT_EQ(Check().faults[0].record, 1U);
  segments[0] = lines[1] + lines[2];
  EXPECT_EQ(Check().faults[0].record, 0U);
  segments[0] = lines[0] + lines[1] + lines[1] + lines[2];
  EXPECT_EQ(Check().faults[0].record, 2U);
}

TEST_F(VerifyTest, ACutTailIsFoundAgainstTheHeadFile) {
  const std::string good = segments[1];
  for (std::size_t keep = 0; keep < good.size(); ++keep) {
    segments[1] = good.substr(0, keep);
    const VerifyReport report = Check();
    ASSERT_FALSE(report.ok()) << "kept " << keep;
    EXPECT_EQ(report.faults[0].segment, 1U);
  }
}

// An attacker who recomputes all hashes of a segment is found by the head file.
TEST_F(VerifyTest, ARewrittenSegmentIsFoundAgainstTheHeadFile) {
  const std::string opening = Lines(segments[0])[0];
  const auto first = ParseLine(std::string_view(opening).substr(0, opening.size() - 1));
  ASSERT_TRUE(first);
  FramedLine line = FrameLine(0, first->previous, first->members);
  std::string forged = line.text;
  for (std::uint64_t n = 1; n < 3; ++n) {
    line = FrameLine(n, line.hash, EncodeEvent(Refusal("harmless")));
    forged += line.text;
  }
  segments[0] = forged;
  const VerifyReport report = Check();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].record, 2U);
}

// The head file's lines: open 0, open 1, close 1, close 0. Without the last ones a segment is
// merely still open, as after a crash; without its opening the head does not know it.
TEST_F(VerifyTest, CuttingTheHeadFileBeforeAnOpeningIsFound) {
  const std::vector<std::string> lines = Lines(head);
  ASSERT_EQ(lines.size(), 4U);
  head = lines[0];
  EXPECT_FALSE(Check().ok());
  head.clear();
  EXPECT_FALSE(Check().ok());
}

TEST_F(VerifyTest, CuttingEverythingIsFoundAgainstAKeptHead) {
  const VerifyReport before = Check();
  ASSERT_TRUE(Check(before.head).ok());
  const std::vector<std::string> lines = Lines(head);
  head = lines[0];
  segments.pop_back();
  EXPECT_TRUE(Check().ok());
  const VerifyReport report = Check(before.head);
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].file, "head.jsonl");
}

TEST_F(VerifyTest, MissingAndForeignFilesAreNamed) {
  std::filesystem::remove(SegmentPath(directory, 0));
  Write(directory + "/segments/0/notes.txt", "x");
  const VerifyReport report = Verify();
  EXPECT_EQ(report.faults.size(), 2U) << Words(report);
}

TEST_F(VerifyTest, WorksOnAReadOnlyCopyWithoutALock) {
  std::filesystem::remove(LockPath(directory));
  EXPECT_TRUE(Verify().ok());
}

}  // namespace
}  // namespace soma::audit
