// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_message.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/error.h"
#include "sandbox/foreground_end.h"

namespace soma::sandbox {
namespace {

TEST(ForegroundMessage, GoesThereAndBack) {
  const auto signal = DecodeToAttendant(Encode(ToAttendant(HostSignal{.number = 15})));
  ASSERT_TRUE(signal);
  EXPECT_EQ(std::get<HostSignal>(*signal).number, 15);
  const auto socket = DecodeToAttendant(Encode(ToAttendant(LauncherSocket{.failure = "gone"})));
  ASSERT_TRUE(socket);
  EXPECT_EQ(std::get<LauncherSocket>(*socket).failure, "gone");
  RunOver over;
  over.ok = true;
  over.end.task = {.exit_code = 137, .started = true, .timed_out = true, .how = "signal: killed"};
  over.end.kernel = "6.1";
  over.end.hits = {.memory_kills = 2, .refused_forks = 3};
  over.code = Errc::kUnavailable;
  const auto back = DecodeToCaller(Encode(ToCaller(over)));
  ASSERT_TRUE(back);
  const auto& read = std::get<RunOver>(*back);
  EXPECT_TRUE(read.ok && read.end.task.started && read.end.task.timed_out);
  EXPECT_EQ(read.end.task.exit_code, 137);
  EXPECT_EQ(read.end.task.how, "signal: killed");
  EXPECT_EQ(read.end.kernel, "6.1");
  EXPECT_EQ(read.end.hits.memory_kills, 2U);
  EXPECT_EQ(read.end.hits.refused_forks, 3U);
  EXPECT_EQ(read.code, Errc::kUnavailable);
}

TEST(ForegroundMessage, LongTextsAreCutAndFitOnePacket) {
  const std::string text(100'000, 'x');
  const Bytes packet = Encode(ToCaller(
      RefusedConnect{.what = text, .object = text, .rule = text, .remedy = text, .times = 7}));
  EXPECT_LE(packet.size(), kForegroundMessageMax);
  const auto back = DecodeToCaller(packet);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<RefusedConnect>(*back).times, 7U);
}

TEST(ForegroundMessage, RefusesEverythingElse) {
  EXPECT_FALSE(DecodeToCaller({}));
  EXPECT_FALSE(DecodeToCaller(Bytes{99}));
  const Bytes whole = Encode(ToCaller(RunOver{}));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeToCaller(ByteView(whole).first(size))) << size;
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(DecodeToCaller(longer));
  // A flag of 2, and a signal that there is none of.
  Bytes flag = whole;
  flag[1] = 2;
  EXPECT_FALSE(DecodeToCaller(flag));
  EXPECT_FALSE(DecodeToAttendant(Bytes{0, 65}));
}

}  // namespace
}  // namespace soma::sandbox
