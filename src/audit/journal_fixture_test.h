// SPDX-License-Identifier: Apache-2.0
// For the journal's tests: a temporary directory, a clock that is moved by hand, and the journal's
// files as values that a test may damage.
#ifndef SOMA_AUDIT_JOURNAL_FIXTURE_TEST_H_
#define SOMA_AUDIT_JOURNAL_FIXTURE_TEST_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "audit/journal.h"
#include "audit/layout.h"
#include "audit/verify.h"
#include "base/clock.h"

namespace soma::audit {

class HandClock final : public Clock {
 public:
  WallTime Now() override { return now += std::chrono::microseconds(1); }
  MonotonicTime MonotonicNow() override { return {}; }
  WallTime now{std::chrono::seconds(1'764'440'521)};
};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "soma-journal-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = pattern;
    directory = root + "/state/journal";
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  std::unique_ptr<Journal> Open(const std::string& run) {
    auto journal = Journal::Open({.directory = directory,
                                  .run = run,
                                  .clock = &clock,
                                  .segment_bytes_max = segment_bytes_max});
    EXPECT_TRUE(journal) << journal.error().message();
    return journal ? *std::move(journal) : nullptr;
  }

  static Event Refusal(const std::string& object) {
    Event event;
    event.kind = EventKind::kRefusal;
    event.verdict = Verdict::kDeny;
    event.object = object;
    return event;
  }

  VerifyReport Verify(const std::optional<Digest>& head = std::nullopt) const {
    auto report = VerifyJournal(directory, head);
    EXPECT_TRUE(report) << report.error().message();
    return report.value_or(VerifyReport{});
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void Write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }

  HandClock clock;
  std::uint64_t segment_bytes_max = 64ULL << 20;
  std::string root;
  std::string directory;
};

// A report in words, for failure messages.
inline std::string Words(const VerifyReport& report) {
  std::string out;
  for (const Finding& fault : report.faults) {
    out += "fault: " + fault.file + " record " + std::to_string(fault.record.value_or(9999)) +
           " byte " + std::to_string(fault.byte_offset.value_or(9999)) + ": " + fault.what + "\n";
  }
  for (const Finding& note : report.notes) out += "note: " + note.file + ": " + note.what + "\n";
  return out;
}

}  // namespace soma::audit

#endif  // SOMA_AUDIT_JOURNAL_FIXTURE_TEST_H_
