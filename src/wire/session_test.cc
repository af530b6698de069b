// SPDX-License-Identifier: Apache-2.0
#include "wire/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "wire/frame.h"
#include "wire/link.h"
#include "wire/lossy_channel.h"
#include "wire/message.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {
namespace {

using Kind = SessionEvent::Kind;

constexpr LinkSecret kKey = {4, 5, 6};

HelloOptions Greeting(std::uint64_t epoch, bool resume = false) {
  return {.epoch = epoch, .secret = kKey, .next_secret = kKey, .resume = resume};
}

Start Shell() { return {.profile = "strict", .arguments = {"sh"}}; }

// Two sessions and a channel; events are kept.
struct World {
  explicit World(std::uint32_t seed = 1) : channel(seed) { host.Hello(Greeting(1)); }

  static void Drain(Session& session, std::vector<SessionEvent>& events) {
    while (auto event = session.Next()) events.push_back(*std::move(event));
  }
  bool Exchange() {
    const bool a = channel.Pull(host, true);
    const bool b = channel.Pull(guest, false);
    const bool c = channel.Push(guest, false);
    Drain(guest, at_guest);
    const bool d = channel.Push(host, true);
    Drain(host, at_host);
    return a || b || c || d;
  }
  void Settle() {
    while (Exchange()) {
    }
    Drain(guest, at_guest);
    Drain(host, at_host);
  }
  void Clear() {
    at_host.clear();
    at_guest.clear();
  }

  Session host{Role::kHost};
  Session guest{Role::kGuest};
  LossyChannel channel;
  std::vector<SessionEvent> at_host;
  std::vector<SessionEvent> at_guest;
};

TEST(Session, OneCommandFromStartToExit) {
  World world;
  world.Settle();
  ASSERT_TRUE(world.host.established());
  const auto run = world.host.Request(Shell());
  ASSERT_TRUE(run);
  world.Settle();
  ASSERT_EQ(world.at_guest.back().channel, *run);
  EXPECT_TRUE(world.at_guest.back().opens);
  EXPECT_EQ(std::get<Start>(world.at_guest.back().message).arguments[0], "sh");
  world.Clear();

  ASSERT_TRUE(world.guest.Reply(*run, Started{.pid = 5}));
  EXPECT_EQ(world.guest.Write(*run, DataKind::kStdout, AsBytes("hello")), 5U);
  ASSERT_TRUE(world.guest.Reply(*run, Exit{.code = 3, .status = "exit status 3"}));
  world.Settle();
  ASSERT_EQ(world.at_host.size(), 3U);
  EXPECT_EQ(std::get<Started>(world.at_host[0].message).pid, 5U);
  EXPECT_EQ(AsText(std::get<Data>(world.at_host[1].message).bytes), "hello");
  EXPECT_EQ(std::get<Exit>(world.at_host[2].message).code, 3);
  EXPECT_TRUE(world.at_host[2].closes);
  EXPECT_EQ(world.host.channel_count(), 0U);
  EXPECT_EQ(world.guest.channel_count(), 0U);
}

TEST(Session, CreditStopsASenderUntilItsBytesAreConsumed) {
  World world;
  world.Settle();
  const ChannelId run = *world.host.Request(Shell());
  world.Settle();
  const Bytes much(kChannelWindow + 1000, 'x');
  EXPECT_EQ(world.guest.Write(run, DataKind::kStdout, much), kChannelWindow);
  world.Settle();
  EXPECT_EQ(world.guest.Write(run, DataKind::kStdout, AsBytes("y")), 0U);
  world.Clear();
  world.host.Consumed(run, kChannelWindow);
  world.Settle();
  ASSERT_FALSE(world.at_guest.empty());
  EXPECT_EQ(world.at_guest.back().kind, Kind::kWritable);
  EXPECT_EQ(world.guest.Write(run, DataKind::kStdout, AsBytes("y")), 1U);
}

TEST(Session, ADuplexChannelClosesWhenBothSidesAreDone) {
  World world;
  world.Settle();
  const ChannelId dial = *world.host.Request(Dial{.port = 80});
  world.Settle();
  ASSERT_TRUE(world.guest.Reply(dial, Opened{}));
  world.host.Write(dial, DataKind::kBytes, AsBytes("GET"));
  world.host.Finish(dial);
  world.Settle();
  EXPECT_TRUE(world.guest.IsOpen(dial));
  world.guest.Write(dial, DataKind::kBytes, AsBytes("200"));
  world.guest.Finish(dial);
  world.Settle();
  EXPECT_FALSE(world.guest.IsOpen(dial));
  EXPECT_FALSE(world.host.IsOpen(dial));
}

TEST(Session, TheGuestOpensChannelsOfItsOwn) {
  World world;
  world.Settle();
  const ChannelId out = *world.guest.Request(Open{.host = "example.org", .port = 443});
  world.Settle();
  EXPECT_TRUE(world.at_host.back().opens);
  ASSERT_TRUE(world.host.Reply(out, Failed{.code = Errc::kPermissionDenied, .message = "no"}));
  world.Settle();
  EXPECT_TRUE(world.at_guest.back().closes);
  EXPECT_EQ(world.host.channel_count(), 0U);
}

TEST(Session, AFreshEpochFailsOpenChannelsAtBothEnds) {
  World world;
  world.Settle();
  const ChannelId run = *world.host.Request(Shell());
  world.Settle();
  world.Clear();
  world.host.Hello(Greeting(2));
  world.Settle();
  for (const auto* events : {&world.at_host, &world.at_guest}) {
    ASSERT_EQ(events->size(), 2U);
    EXPECT_EQ((*events)[0].channel, run);
    EXPECT_EQ(std::get<Failed>((*events)[0].message).code, Errc::kUnavailable);
    EXPECT_EQ((*events)[1].kind, Kind::kEstablished);
  }
  EXPECT_TRUE(world.host.Request(Shell()));
}

// Some commands whose output is a known pattern, pumped by the guest and checked by the host.
class Streams {
 public:
  static constexpr std::size_t kSize = 300'000;

  Streams(World& world, std::size_t count) : world_(world) {
    for (std::size_t i = 0; i < count; ++i) streams_[*world.host.Request(Shell())];
  }

  // Writes as much as the session takes, then Exit with the channel's number.
  void Pump(ChannelId id) {
    Stream& stream = streams_.at(id);
    while (stream.sent < kSize) {
      const std::string part =
          Pattern(id, stream.sent, std::min<std::size_t>(kSize - stream.sent, 9'000));
      const std::size_t taken = world_.guest.Write(id, DataKind::kStdout, AsBytes(part));
      stream.sent += taken;
      if (taken < part.size()) return;
    }
    ASSERT_TRUE(world_.guest.Reply(id, Exit{.code = static_cast<std::int32_t>(id)}));
  }

  void TakeAtHost(const SessionEvent& event) {
    ASSERT_NE(event.kind, Kind::kBroken) << event.reason;
    if (event.kind != Kind::kMessage) return;
    Stream& stream = streams_.at(event.channel);
    if (const auto* data = std::get_if<Data>(&event.message)) {
      stream.received += AsText(data->bytes);
      world_.host.Consumed(event.channel, data->bytes.size());
      return;
    }
    EXPECT_FALSE(stream.exited);
    EXPECT_EQ(std::get<Exit>(event.message).code, static_cast<std::int32_t>(event.channel));
    stream.exited = true;
  }

  void ExpectWhole() {
    for (const auto& [id, stream] : streams_) {
      EXPECT_TRUE(stream.exited);
      EXPECT_TRUE(stream.received == Pattern(id, 0, kSize));
    }
  }

 private:
  struct Stream {
    std::size_t sent = 0;
    std::string received;
    bool exited = false;
  };
  static std::string Pattern(ChannelId id, std::size_t from, std::size_t size) {
    std::string out(size, 0);
    for (std::size_t k = 0; k < size; ++k) {
      out[k] = static_cast<char>('a' + (((from + k) / 100 + id) % 26));
    }
    return out;
  }

  World& world_;
  std::map<ChannelId, Stream> streams_;
};

class SessionCuts : public testing::TestWithParam<std::uint32_t> {};

// Many commands at once over a channel that is cut again and again: each stream arrives whole and
// in order, each Exit once.
TEST_P(SessionCuts, EveryStreamArrivesWhole) {
  World world(GetParam());
  world.Settle();
  Streams streams(world, 8);
  std::uint64_t epoch = 1;
  std::size_t cuts = 15;
  for (int idle = 0; idle < 50;) {
    idle = world.Exchange() ? 0 : idle + 1;
    for (const auto& event : std::exchange(world.at_guest, {})) {
      if (event.opens || event.kind == Kind::kWritable) streams.Pump(event.channel);
    }
    for (const auto& event : std::exchange(world.at_host, {})) streams.TakeAtHost(event);
    if (cuts > 0 && world.channel.Pick(0, 60) == 0) {
      --cuts;
      world.channel.Cut();
      world.host.Hello(Greeting(++epoch, true));
    }
  }
  streams.ExpectWhole();
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionCuts, testing::Range(0U, 12U));

// ---- A hostile guest: a raw Link with any message on it ----

struct HostileWorld {
  HostileWorld() {
    host.Hello(Greeting(1));
    Settle();
  }
  void Settle() {
    for (int i = 0; i < 3; ++i) {
      for (ByteView out = host.Output(); !out.empty(); out = host.Output()) {
        guest.OnBytes(out);
        host.Wrote(out.size());
        while (guest.Next()) {
        }
      }
      for (ByteView out = guest.Output(); !out.empty(); out = guest.Output()) {
        host.OnBytes(out);
        guest.Wrote(out.size());
        World::Drain(host, at_host);
      }
    }
  }
  void Say(ChannelId id, const Message& message) {
    guest.Send(*Encode({.channel = id, .message = message}));
    Settle();
  }
  bool IsBroken() const { return !at_host.empty() && at_host.back().kind == Kind::kBroken; }

  Session host{Role::kHost};
  Link guest{Role::kGuest};
  std::vector<SessionEvent> at_host;
};

TEST(HostileGuest, RepliesThatDoNotBelongBreakTheSession) {
  const std::vector<Message> wrong = {
      Exit{},  Shell(), Data{.bytes = {1}},
      Stats{}, End{},   Data{.kind = DataKind::kStdout, .bytes = {1}}};
  for (const Message& message : wrong) {
    HostileWorld world;
    const ChannelId stat = *world.host.Request(Stat{.path = "/"});
    world.Settle();
    world.Say(stat, message);
    EXPECT_TRUE(world.IsBroken()) << MessageName(message);
  }
}

TEST(HostileGuest, DataBeyondItsCreditBreaksTheSession) {
  HostileWorld world;
  const ChannelId run = *world.host.Request(Shell());
  world.Settle();
  for (std::uint64_t i = 0; i <= kChannelWindow / kDataMax; ++i) {
    ASSERT_FALSE(world.IsBroken());
    world.Say(run,
              Data{.kind = DataKind::kStdout, .offset = i * kDataMax, .bytes = Bytes(kDataMax)});
  }
  EXPECT_TRUE(world.IsBroken());
}

TEST(HostileGuest, AMillionStreamsBreakTheSessionAtTheLimit) {
  HostileWorld world;
  std::size_t opened = 0;
  while (!world.IsBroken() && opened < 1'000'000) {
    world.Say(kGuestChannelBit + static_cast<ChannelId>(++opened), Open{.host = "x", .port = 1});
  }
  EXPECT_EQ(opened, kChannelsMax + 1);
}

// Frames made by hand, so that they never acknowledge anything.
Bytes FrameWith(std::uint64_t sequence, const Envelope& envelope) {
  const Bytes payload = *Encode(envelope);
  const auto raw = EncodeFrameHeader({.type = FrameType::kData,
                                      .epoch = 1,
                                      .length = static_cast<std::uint32_t>(payload.size()),
                                      .payload_sum = static_cast<std::uint32_t>(Checksum(payload)),
                                      .sequence = sequence});
  Bytes frame(raw.begin(), raw.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

// Each request of the guest makes the host answer, and the guest takes no answer. The queue grows
// to its hard limit and not further; then the session is over and the queue is gone.
TEST(HostileGuest, CostsAConstantAmountOfMemory) {
  HostileWorld world;
  const std::string long_answer(1000, 'x');
  std::size_t queued_max = 0;
  std::uint32_t sent = 0;
  while (!world.IsBroken() && sent < 1'000'000) {
    const ChannelId id = kGuestChannelBit + 1 + sent;
    world.host.OnBytes(FrameWith(sent++, {.channel = id, .message = Open{.host = "x"}}));
    World::Drain(world.host, world.at_host);
    if (world.host.IsOpen(id)) {
      EXPECT_TRUE(world.host.Reply(id, Failed{.message = long_answer}));
    }
    World::Drain(world.host, world.at_host);
    while (!world.host.Output().empty()) world.host.Wrote(world.host.Output().size());
    queued_max = std::max(queued_max, world.host.queued_bytes());
    if (!world.IsBroken()) world.at_host.clear();
  }
  EXPECT_TRUE(world.IsBroken());
  EXPECT_LT(sent, 10'000U);
  EXPECT_LE(queued_max, kSendQueueHardMax);
  EXPECT_EQ(world.host.queued_bytes(), 0U);
  EXPECT_EQ(world.host.channel_count(), 0U);
}

TEST(HostileGuest, ChannelNumbersOfTheHostOrUsedOnesAreRefused) {
  for (const ChannelId id : {ChannelId{5}, kGuestChannelBit + 1}) {
    HostileWorld world;
    world.Say(kGuestChannelBit + 1, Open{.host = "x"});
    ASSERT_FALSE(world.IsBroken());
    ASSERT_TRUE(world.host.Reply(kGuestChannelBit + 1, Failed{}));
    world.Say(id, Open{.host = "x"});
    EXPECT_TRUE(world.IsBroken());
  }
}

TEST(HostileGuest, LateWordsAboutAClosedChannelAreDropped) {
  HostileWorld world;
  const ChannelId run = *world.host.Request(Shell());
  world.Settle();
  world.host.Abort(run, Errc::kCancelled, "");
  world.at_host.clear();
  world.Say(run, Started{});
  world.Say(run, Data{.kind = DataKind::kStdout, .bytes = {1}});
  world.Say(run, Exit{});
  EXPECT_TRUE(world.at_host.empty());
  EXPECT_TRUE(world.host.established());
}

}  // namespace
}  // namespace soma::wire
