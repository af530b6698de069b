// SPDX-License-Identifier: Apache-2.0
#include "audit/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "audit/chain.h"
#include "audit/event.h"
#include "audit/head.h"
#include "audit/journal_fixture_test.h"
#include "audit/layout.h"
#include "audit/recorder.h"
#include "audit/tail.h"
#include "audit/verify.h"
#include "base/error.h"
#include "base/sanitized.h"

namespace soma::audit {
namespace {

TEST_F(JournalTest, WritesRecordsThatVerify) {
  {
    const auto journal = Open("r1");
    ASSERT_TRUE(journal->Record(Refusal("/etc/shadow"), Durability::kSoon));
    ASSERT_TRUE(journal->Record(Refusal("x"), Durability::kBeforeEffect));
  }
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.segments, 1U);
  EXPECT_EQ(report.records, 3U);
  Tail tail(directory);
  const auto records = tail.Last(2);
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ(records->front().event.object, "/etc/shadow");
}

TEST_F(JournalTest, EachWriterHasItsOwnSegmentAndTheHeadNamesBoth) {
  const auto first = Open("r1");
  const auto second = Open("r2");
  ASSERT_TRUE(first->Record(Refusal("a"), Durability::kSoon));
  ASSERT_TRUE(second->Record(Refusal("b"), Durability::kSoon));
  ASSERT_TRUE(first->Close());
  EXPECT_FALSE(first->Record(Refusal("late"), Durability::kSoon));
  EXPECT_EQ(Verify().segments, 2U);
  EXPECT_TRUE(Verify().ok());
  const auto head = LockedHead::Take(directory);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->last().open, std::vector<std::uint64_t>{1});
  EXPECT_EQ(head->last().next, 2U);
}

TEST_F(JournalTest, TailFollowsNewRecordsAndSegments) {
  const auto journal = Open("r1");
  Tail tail(directory);
  ASSERT_EQ(tail.Last(10)->size(), 1U);
  ASSERT_TRUE(tail.Next()->empty());
  ASSERT_TRUE(journal->Record(Refusal("a"), Durability::kSoon));
  const auto other = Open("r2");
  ASSERT_TRUE(other->Record(Refusal("b"), Durability::kSoon));
  const auto more = tail.Next();
  ASSERT_EQ(more->size(), 3U);
  EXPECT_EQ(more->front().event.object, "a");
}

TEST_F(JournalTest, RotatesAtItsSize) {
  segment_bytes_max = 2000;
  {
    const auto journal = Open("r1");
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(journal->Record(Refusal("x"), Durability::kSoon));
  }
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_GT(report.segments, 4U);
  EXPECT_EQ(report.records, 40 + report.segments);
}

TEST_F(JournalTest, ManyThreadsShareOneJournal) {
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  {
    const auto journal = Open("r1");
    std::vector<std::future<void>> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.push_back(std::async(std::launch::async, [&] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(journal->Record(Refusal("x"), Durability::kBeforeEffect));
        }
      }));
    }
    for (std::future<void>& thread : threads) thread.get();
  }
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.records, 1U + kThreads * kEach);
}

// Runs `body` in a child process that is killed when it returns, like a program by SIGKILL: no
// destructor, no closing line.
template <typename Body>
void InKilledChild(Body body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    (void)::kill(::getpid(), SIGKILL);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(JournalTest, TheNextWriterSealsADeadOnesSegment) {
  InKilledChild([&] {
    const auto journal = Open("dead");
    (void)journal->Record(Refusal("a"), Durability::kSoon);
    (void)::kill(::getpid(), SIGKILL);
  });
  EXPECT_TRUE(Verify().ok());
  const auto journal = Open("next");
  // It was sealed, and then gone on with.
  EXPECT_NE(Read(HeadPath(directory)).find(R"("change":"seal","segment":0,"records":2)"),
            std::string::npos);
  EXPECT_EQ(LockedHead::Take(directory)->last().open, std::vector<std::uint64_t>{0});
  const std::string path = SegmentPath(directory, 0);
  std::filesystem::resize_file(path, Read(path).find('\n') + 1);
  const VerifyReport report = Verify();
  ASSERT_EQ(report.faults.size(), 1U) << Words(report);
  EXPECT_EQ(report.faults[0].segment, 0U);
  EXPECT_EQ(report.faults[0].record, 1U);
}

TEST_F(JournalTest, OneAfterTheOtherGoOnWithOneSegment) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Open("r")->Record(Refusal("x"), Durability::kSoon));
  }
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.segments, 1U);
  EXPECT_EQ(report.records, 10U);
}

// A writer that died while it went on with an idle segment: in its opening record, or after it.
TEST_F(JournalTest, ADeathWhileOpeningAnIdleSegmentIsExplained) {
  (void)Open("first");
  const std::string path = SegmentPath(directory, 0);
  const std::string good = Read(path);
  const auto last = ParseLine(std::string_view(good).substr(0, good.size() - 1));
  ASSERT_TRUE(last);
  const FramedLine opening = FrameLine(1, last->hash, last->members);
  Write(path, good + opening.text);
  EXPECT_TRUE(Verify().ok()) << Words(Verify());
  (void)Open("second");
  EXPECT_TRUE(Verify().ok()) << Words(Verify());
  EXPECT_EQ(Verify().segments, 1U);
  Write(path, Read(path) + "{\"n\"");
  EXPECT_TRUE(Verify().ok()) << Words(Verify());
  (void)Open("third");
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.segments, 2U);
}

TEST_F(JournalTest, ATornRecordIsNamedAndSealed) {
  InKilledChild([&] {
    const auto journal = Open("dead");
    (void)::kill(::getpid(), SIGKILL);
  });
  const std::string path = SegmentPath(directory, 0);
  Write(path, Read(path) + R"({"n":1,"prev":")");
  VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.notes.size(), 1U);
  (void)Open("next");
  report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_EQ(report.notes.size(), 1U);
}

// A writer that died between making its segment and its line in the head file.
TEST_F(JournalTest, ASegmentTheHeadDoesNotKnowIsSealed) {
  const auto busy = Open("busy");
  const FramedLine line = FrameLine(0, Digest{}, EncodeEvent(Event{}));
  for (const std::string& content : {std::string(), std::string("{\"n"), line.text}) {
    const std::uint64_t next = LockedHead::Take(directory)->last().next;
    Write(SegmentPath(directory, next), content);
    EXPECT_TRUE(Verify().ok()) << Words(Verify());
    const auto journal = Open("next");
    EXPECT_TRUE(Verify().ok()) << Words(Verify());
    std::filesystem::resize_file(SegmentPath(directory, next), 0);
    EXPECT_EQ(Verify().ok(), content.empty());
    Write(SegmentPath(directory, next), content);
  }
}

TEST_F(JournalTest, ATornHeadLineIsMended) {
  (void)Open("first");
  Write(HeadPath(directory), Read(HeadPath(directory)) + "{\"n\":2,");
  EXPECT_TRUE(Verify().ok());
  (void)Open("second");
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_NE(Read(HeadPath(directory)).find("\"mended\":7"), std::string::npos);
}

TEST_F(JournalTest, RefusesToGoOnWithADamagedOrMissingHead) {
  (void)Open("first");
  (void)Open("second");
  const std::string good = Read(HeadPath(directory));
  std::string bad = good;
  bad[bad.size() - 100] ^= 1;
  Write(HeadPath(directory), bad);
  auto journal = Journal::Open({.directory = directory, .run = "r", .clock = &clock});
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code(), Errc::kDataLoss);
  std::filesystem::remove(HeadPath(directory));
  journal = Journal::Open({.directory = directory, .run = "r", .clock = &clock});
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code(), Errc::kDataLoss);
}

TEST_F(JournalTest, AFullDiskRefusesTheRecordAndLeavesAWholeJournal) {
  InKilledChild([&] {
    (void)::signal(SIGXFSZ, SIG_IGN);
    const auto journal = Open("full");
    const std::uint64_t size = std::filesystem::file_size(SegmentPath(directory, 0));
    const rlimit limit{size + 200, size + 200};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    if (journal->Record(Refusal(std::string(1000, 'x')), Durability::kSoon)) ::_exit(1);
    (void)::kill(::getpid(), SIGKILL);
  });
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.ok()) << Words(report);
  EXPECT_TRUE(report.notes.empty()) << Words(report);
  EXPECT_EQ(report.records, 1U);
}

// Several processes append as fast as they can and are killed at random moments; whatever instant
// it is, the journal verifies and goes on.
TEST_F(JournalTest, SurvivesRandomKills) {
  std::uint32_t seed = 12345;
  constexpr int kRounds = kSanitized ? 10 : 40;
  for (int round = 0; round < kRounds; ++round) {
    pid_t children[3];
    for (pid_t& child : children) {
      child = ::fork();
      ASSERT_GE(child, 0);
      if (child != 0) continue;
      while (true) {
        const auto journal = Journal::Open({.directory = directory,
                                            .run = "c",
                                            .clock = &clock,
                                            .segment_bytes_max = 3000,
                                            .mark_microseconds = 3});
        for (int i = 0; journal && i < 20; ++i) {
          (void)(*journal)->Record(Refusal("y"), Durability::kSoon);
        }
      }
    }
    for (const pid_t child : children) {
      seed = seed * 1664525 + 1013904223;
      ::usleep(200 + (seed >> 8) % 4000);
      (void)::kill(child, SIGKILL);
      ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    }
    const VerifyReport report = Verify();
    ASSERT_TRUE(report.ok()) << "round " << round << "\n" << Words(report);
  }
  EXPECT_GT(Verify().records, 100U);
}

}  // namespace
}  // namespace soma::audit
