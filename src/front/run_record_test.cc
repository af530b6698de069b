// SPDX-License-Identifier: Apache-2.0
#include "front/run_record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/result.h"
#include "front/run_report.h"
#include "walls/denied.h"

namespace soma::front {
namespace {

class Kept final : public audit::Recorder {
 public:
  Status Record(const audit::Event& event, audit::Durability /*durability*/) override {
    events.push_back(event);
    return {};
  }
  std::vector<audit::Event> events;
};

std::string FieldOf(const audit::Event& event, std::string_view name) {
  for (const auto& [key, value] : event.fields) {
    if (key == name) return value;
  }
  return "-";
}

TEST(RunRecord, RefusalsInALoopDoNotFillTheJournal) {
  Kept kept;
  RunRecord record(kept, "r");
  constexpr std::uint64_t kTimes = 100'000;
  const walls::Denied denied{.command = "sh", .tried = "open for writing", .object = "/etc/x"};
  for (std::uint64_t i = 0; i < kTimes; ++i) ASSERT_TRUE(record.Refusal(denied));
  // 32768 and 65536 are left of what comes after.
  ASSERT_EQ(kept.events.size(), kRefusalsRecorded + 2);
  EXPECT_EQ(FieldOf(kept.events[kRefusalsRecorded - 1], "count"), "-");
  EXPECT_EQ(FieldOf(kept.events.back(), "count"), "65536");
  ASSERT_TRUE(record.End(RunReport{}));
  EXPECT_EQ(FieldOf(kept.events.back(), "refusals"), "100000");
  EXPECT_EQ(FieldOf(kept.events.back(), "refusals_unrecorded"), "79998");
}

TEST(RunRecord, AnEndSaysNothingOfRefusalsThatAreAllThere) {
  Kept kept;
  RunRecord record(kept, "r");
  ASSERT_TRUE(record.Refusal({.command = "sh"}));
  ASSERT_TRUE(record.End(RunReport{}));
  EXPECT_EQ(FieldOf(kept.events.back(), "refusals"), "-");
}

}  // namespace
}  // namespace soma::front
