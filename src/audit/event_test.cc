// SPDX-License-Identifier: Apache-2.0
#include "audit/event.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "audit/json_text.h"
#include "audit/time_text.h"
#include "base/clock.h"
#include "base/sanitized.h"

namespace soma::audit {
namespace {

Event FullEvent() {
  Event event;
  event.time = WallTime(std::chrono::microseconds(1'764'440'521'123'456));
  event.kind = EventKind::kRefusal;
  event.source = Source::kGuest;
  event.verdict = Verdict::kDeny;
  event.run = "r-1";
  event.sandbox = "sbx";
  event.tenant = "t";
  event.subject = "python3[231]";
  event.object = "/home/u/.ssh/id \"x\"\\\n\x1b[2J\xff\xe2\x80\xae";
  event.rule = "filesystem.hide";
  event.remedy = "filesystem.read += [\"~/.ssh\"]";
  event.fields = {{"errno", "EACCES"}, {"n", ""}};
  return event;
}

TEST(Event, EncodesCanonically) {
  EXPECT_EQ(EncodeEvent(FullEvent()),
            R"("time":"2025-11-29T18:22:01.123456Z","kind":"refusal","source":"guest",)"
            R"("verdict":"deny","run":"r-1","sandbox":"sbx","tenant":"t","subject":"python3[231]",)"
            R"("object":"/home/u/.ssh/id \"x\"\\\u000a\u001b[2J\udcff\u202e",)"
            R"("rule":"filesystem.hide","remedy":"filesystem.read += [\"~/.ssh\"]",)"
            R"("fields":{"errno":"EACCES","n":""})");
}

TEST(Event, DecodesWhatItEncodes) {
  const Event event = FullEvent();
  const auto decoded = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(*decoded, event);
  EXPECT_EQ(DecodeEvent(EncodeEvent(Event{})).value_or(event), Event{});
}

// Every single byte string of one or two bytes survives the trip.
TEST(Event, TextIsLosslessForAnyBytes) {
  constexpr int kStep = kSanitized ? 5 : 1;
  for (int a = 0; a < 256; ++a) {
    for (int b = a % kStep; b < 256; b += kStep) {
      Event event;
      event.object = {static_cast<char>(a), static_cast<char>(b)};
      const auto decoded = DecodeEvent(EncodeEvent(event));
      ASSERT_TRUE(decoded) << a << " " << b;
      ASSERT_EQ(decoded->object, event.object);
    }
  }
}

TEST(Event, CutsWhatIsTooLongAndSaysSo) {
  Event event;
  event.object.assign(kObjectBytesMax + 1, 'x');
  const auto decoded = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->object.size(), kObjectBytesMax);
  EXPECT_TRUE(decoded->cut);
  // The cut event encodes to the same bytes again.
  EXPECT_EQ(EncodeEvent(*decoded), EncodeEvent(event));
}

TEST(Event, DropsFieldsBeyondTheBoundAndBadKeys) {
  Event event;
  for (std::size_t i = 0; i <= kFieldsMax; ++i) event.fields.emplace_back("k", "v");
  auto decoded = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->fields.size(), kFieldsMax);
  EXPECT_TRUE(decoded->cut);

  event.fields = {{"good", "1"}, {"Bad Key", "2"}, {"never", "3"}};
  decoded = DecodeEvent(EncodeEvent(event));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->fields.size(), 1U);
  EXPECT_TRUE(decoded->cut);
}

// Whatever byte of an encoded event changes, it does not decode to the same event.
TEST(Event, NoOtherSpellingDecodesToTheSameEvent) {
  const Event event = FullEvent();
  const std::string good = EncodeEvent(event);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto decoded = DecodeEvent(bad);
      if (decoded) EXPECT_NE(*decoded, event) << i;
    }
  }
}

TEST(Event, RefusesOtherShapes) {
  for (const char* text :
       {"", "{}", R"("kind":"start")",
        R"("time":"2025-11-29T18:22:01.123456Z","kind":"other","source":"host")",
        R"("time":"2025-11-29T18:22:01.123456Z","kind":"start","source":"host" )",
        R"("time":"2025-13-29T18:22:01.123456Z","kind":"start","source":"host")",
        R"("time":"2025-11-29T18:22:01.123456Z","kind":"start","source":"host","run":"")"}) {
    EXPECT_FALSE(DecodeEvent(text)) << text;
  }
}

TEST(TimeText, RoundTripsAndClamps) {
  EXPECT_EQ(FormatTime(WallTime{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatTime(WallTime::max()), "9999-12-31T23:59:59.999999Z");
  const WallTime time(std::chrono::microseconds(951'782'400'000'001));
  EXPECT_EQ(FormatTime(time), "2000-02-29T00:00:00.000001Z");
  EXPECT_EQ(ParseTime(FormatTime(time)), time);
  EXPECT_EQ(ParseTime("2001-02-29T00:00:00.000001Z"), std::nullopt);
  EXPECT_EQ(ParseTime("2000-02-29T00:00:00.00000+Z"), std::nullopt);
}

TEST(TextReader, NumbersHaveOneSpelling) {
  EXPECT_EQ(TextReader("0").Number(), 0U);
  for (const char* text : {"", "01", "-1", "+1", "99999999999999999999"}) {
    TextReader in(text);
    (void)in.Number();
    EXPECT_FALSE(in.ok()) << text;
  }
}

}  // namespace
}  // namespace soma::audit
