// SPDX-License-Identifier: Apache-2.0
#include "wire/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/lossy_channel.h"

namespace soma::wire {
namespace {

constexpr LinkSecret kKey = {1, 2, 3};

HelloOptions Greeting(std::uint64_t epoch, bool resume) {
  return {.epoch = epoch, .secret = kKey, .next_secret = kKey, .resume = resume};
}

// A message that says its number and whose content depends on it.
Bytes Numbered(std::uint32_t number, std::size_t size) {
  Bytes out(std::max<std::size_t>(size, 4), static_cast<std::uint8_t>(number * 7));
  for (std::size_t i = 0; i < 4; ++i) out[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return out;
}

std::uint32_t NumberOf(const Bytes& message) { return ByteReader(message).Get<std::uint32_t>(); }

// Two links, a channel between them, and what each has received.
struct Pair {
  explicit Pair(std::uint32_t seed) : channel(seed) {}

  void Drain(Link& link, std::vector<LinkEvent>& events) {
    while (auto event = link.Next()) events.push_back(*std::move(event));
  }
  bool Exchange() {
    const bool a = channel.Pull(host, true);
    const bool b = channel.Pull(guest, false);
    const bool c = channel.Push(guest, false);
    Drain(guest, guest_events);
    const bool d = channel.Push(host, true);
    Drain(host, host_events);
    return a || b || c || d;
  }
  void Settle() {
    while (Exchange()) {
    }
  }
  static std::vector<Bytes> Messages(const std::vector<LinkEvent>& events) {
    std::vector<Bytes> out;
    for (const LinkEvent& event : events) {
      if (event.kind == LinkEvent::Kind::kMessage) out.push_back(event.message);
    }
    return out;
  }

  Link host{Role::kHost};
  Link guest{Role::kGuest};
  LossyChannel channel;
  std::vector<LinkEvent> host_events;
  std::vector<LinkEvent> guest_events;
};

TEST(Link, CarriesMessagesBothWays) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  pair.host.Send(Numbered(1, kMessageSizeMax));
  pair.guest.Send(Numbered(2, 5));
  pair.Settle();
  EXPECT_EQ(Pair::Messages(pair.guest_events), std::vector<Bytes>{Numbered(1, kMessageSizeMax)});
  EXPECT_EQ(Pair::Messages(pair.host_events), std::vector<Bytes>{Numbered(2, 5)});
  EXPECT_EQ(pair.host.in_flight_bytes(), 0U);
  EXPECT_EQ(pair.guest.in_flight_bytes(), 0U);
}

TEST(Link, SendsNothingBeforeAnEpoch) {
  Link guest(Role::kGuest);
  guest.Send(Numbered(1, 100));
  EXPECT_TRUE(guest.Output().empty());
}

TEST(Link, KeepsBelowTheWindowWithoutAcknowledgement) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  for (std::uint32_t i = 0; i < 100; ++i) pair.host.Send(Numbered(i, 10'000));
  std::size_t written = 0;
  for (ByteView out = pair.host.Output(); !out.empty(); out = pair.host.Output()) {
    written += out.size();
    pair.host.Wrote(out.size());
  }
  EXPECT_LE(written, kWindowBytes);
  EXPECT_GT(written, kWindowBytes / 2);
}

class LinkCuts : public testing::TestWithParam<std::uint32_t> {};

// The conformance test: whatever the cuts do, a resumed link loses nothing and doubles nothing.
TEST_P(LinkCuts, LoseNothingAndDoubleNothing) {
  Pair pair(GetParam());
  LossyChannel& channel = pair.channel;
  std::uint64_t epoch = 1;
  pair.host.Hello(Greeting(epoch, false));
  pair.Settle();
  constexpr std::uint32_t kMessages = 120;
  std::uint32_t from_host = 0;
  std::uint32_t from_guest = 0;
  std::size_t cuts = 20;
  while (true) {
    const bool moved = pair.Exchange();
    if (from_host < kMessages && channel.Pick(0, 3) == 0) {
      pair.host.Send(Numbered(from_host++, channel.Pick(4, 60'000)));
    }
    if (from_guest < kMessages && channel.Pick(0, 3) == 0) {
      pair.guest.Send(Numbered(from_guest++, channel.Pick(4, 60'000)));
    }
    if (cuts > 0 && channel.Pick(0, 40) == 0) {
      --cuts;
      channel.Cut();
      pair.host.Hello(Greeting(++epoch, true));
    }
    const bool sent_all = from_host == kMessages && from_guest == kMessages;
    if (!moved && sent_all && cuts == 0) break;
  }
  const auto at_guest = Pair::Messages(pair.guest_events);
  const auto at_host = Pair::Messages(pair.host_events);
  ASSERT_EQ(at_guest.size(), kMessages);
  ASSERT_EQ(at_host.size(), kMessages);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    EXPECT_EQ(NumberOf(at_guest[i]), i);
    EXPECT_EQ(NumberOf(at_host[i]), i);
    EXPECT_EQ(at_host[i], Numbered(i, at_host[i].size()));
  }
}

// A new server process: a new host link meets the old guest link, again and again.
TEST_P(LinkCuts, FreshEpochsStartOverCleanly) {
  LossyChannel channel(GetParam());
  Link guest(Role::kGuest);
  std::uint32_t sent = 0;
  for (std::uint64_t epoch = 10; epoch < 20; ++epoch) {
    Link host(Role::kHost);
    std::vector<Bytes> received;
    bool established = false;
    host.Hello(Greeting(epoch, false));
    const std::uint32_t first = sent;
    for (int i = 0; i < 200; ++i) {
      channel.Pull(host, true);
      channel.Pull(guest, false);
      channel.Push(guest, false);
      while (auto event = guest.Next()) {
        if (event->kind != LinkEvent::Kind::kEstablished) continue;
        EXPECT_FALSE(event->resumed);
        for (int k = 0; k < 10; ++k) guest.Send(Numbered(sent++, 20'000));
      }
      channel.Push(host, true);
      while (auto event = host.Next()) {
        ASSERT_NE(event->kind, LinkEvent::Kind::kBroken) << event->reason;
        established |= event->kind == LinkEvent::Kind::kEstablished;
        if (event->kind == LinkEvent::Kind::kMessage) received.push_back(event->message);
      }
    }
    EXPECT_TRUE(established);
    for (std::size_t i = 0; i < received.size(); ++i) EXPECT_EQ(NumberOf(received[i]), first + i);
    channel.Cut();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LinkCuts, testing::Range(0U, 40U));

void Feed(Link& link, ByteView bytes, std::vector<LinkEvent>& events) {
  for (std::size_t at = 0; at < bytes.size(); at += kInputMax) {
    link.OnBytes(bytes.subspan(at, std::min(kInputMax, bytes.size() - at)));
    while (auto event = link.Next()) events.push_back(*std::move(event));
  }
}

Bytes HelloBytes(std::uint64_t epoch, const LinkSecret& secret) {
  return EncodeHello(FrameType::kHello, kFlagFresh, epoch,
                     {.secret = secret, .next_secret = secret});
}

TEST(Link, FindsHelloInsideACutFrameAtEveryPlace) {
  for (std::size_t cut = 0; cut <= 400; ++cut) {
    Pair pair(1);
    pair.host.Hello(Greeting(1, false));
    pair.Settle();
    pair.host.Send(Numbered(1, 400));
    Bytes bytes(pair.host.Output().begin(), pair.host.Output().end());
    bytes.resize(std::min(cut, bytes.size()));
    const Bytes hello = HelloBytes(2, kKey);
    bytes.insert(bytes.end(), hello.begin(), hello.end());
    std::vector<LinkEvent> events;
    Feed(pair.guest, bytes, events);
    ASSERT_EQ(pair.guest.epoch(), 2U) << "cut after " << cut;
  }
}

TEST(Link, AFreshEpochForgetsAMessageThatWasHalfThere) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  pair.host.Send(Numbered(1, 40'000));
  const Bytes first_frame(pair.host.Output().begin(), pair.host.Output().end());
  std::vector<LinkEvent> events;
  Feed(pair.guest, first_frame, events);
  pair.host.Hello(Greeting(2, false));
  pair.host.Send(Numbered(2, 100));
  pair.Settle();
  EXPECT_EQ(Pair::Messages(pair.guest_events), std::vector<Bytes>{Numbered(2, 100)});
}

TEST(Link, AFrameOfAnOldEpochIsDropped) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  pair.host.Send(Numbered(1, 100));
  const Bytes old(pair.host.Output().begin(), pair.host.Output().end());
  pair.host.Hello(Greeting(2, false));
  pair.Settle();
  pair.channel.Inject(old, false);
  pair.host.Send(Numbered(2, 100));
  pair.Settle();
  EXPECT_EQ(Pair::Messages(pair.guest_events), std::vector<Bytes>{Numbered(2, 100)});
}

TEST(Link, TaskDataCanNotForgeAHello) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  Bytes forged = HelloBytes(99, LinkSecret{9});
  pair.host.Send(forged);
  pair.channel.Inject(forged, false);
  pair.Settle();
  EXPECT_EQ(pair.guest.epoch(), 1U);
  EXPECT_EQ(Pair::Messages(pair.guest_events), std::vector<Bytes>{forged});
}

TEST(Link, AStaleEpochIsAnsweredAndTheHostGoesAboveIt) {
  Pair pair(1);
  pair.host.Hello(Greeting(1000, false));
  pair.Settle();
  Link next(Role::kHost);
  next.Hello(Greeting(5, false));
  for (int i = 0; i < 50; ++i) {
    pair.channel.Pull(next, true);
    pair.channel.Push(pair.guest, false);
    while (pair.guest.Next()) {
    }
    pair.channel.Pull(pair.guest, false);
    pair.channel.Push(next, true);
    while (next.Next()) {
    }
  }
  EXPECT_TRUE(next.established());
  EXPECT_EQ(next.epoch(), 1001U);
}

TEST(Link, QuiesceWaitsForEveryAcknowledgementAndResumeGoesOn) {
  Pair pair(3);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  for (std::uint32_t i = 0; i < 30; ++i) pair.guest.Send(Numbered(i, 10'000));
  pair.channel.Pull(pair.guest, false);
  pair.host.Quiesce();
  pair.Settle();
  ASSERT_EQ(pair.host_events.back().kind, LinkEvent::Kind::kQuiesced);
  EXPECT_TRUE(pair.guest.Output().empty());
  const std::size_t before = Pair::Messages(pair.host_events).size();
  EXPECT_LT(before, 30U);
  pair.host.Resume();
  pair.Settle();
  EXPECT_EQ(Pair::Messages(pair.host_events).size(), 30U);
}

TEST(Link, AcknowledgingWhatWasNeverSentBreaksTheHostsLink) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  pair.host_events.clear();
  const auto ack = EncodeFrameHeader({.type = FrameType::kAck,
                                      .epoch = 1,
                                      .payload_sum = static_cast<std::uint32_t>(Checksum({})),
                                      .acknowledged = 5});
  pair.channel.Inject(ack, true);
  pair.Settle();
  ASSERT_EQ(pair.host_events.size(), 1U);
  EXPECT_EQ(pair.host_events[0].kind, LinkEvent::Kind::kBroken);
  // What follows is dropped, and a new Hello works.
  pair.channel.Inject(Bytes(1000, 'x'), true);
  pair.host.Hello(Greeting(2, false));
  pair.Settle();
  EXPECT_TRUE(pair.host.established());
}

TEST(Link, AMessageWithoutEndBreaksTheLink) {
  Pair pair(1);
  pair.host.Hello(Greeting(1, false));
  pair.Settle();
  pair.host_events.clear();
  const Bytes payload(kFramePayloadMax, 'x');
  for (std::uint64_t i = 0; i < 100; ++i) {
    Bytes frame;
    const auto raw =
        EncodeFrameHeader({.type = FrameType::kData,
                           .flags = kFlagMore,
                           .epoch = 1,
                           .length = static_cast<std::uint32_t>(payload.size()),
                           .payload_sum = static_cast<std::uint32_t>(Checksum(payload)),
                           .sequence = i});
    frame.assign(raw.begin(), raw.end());
    frame.insert(frame.end(), payload.begin(), payload.end());
    pair.host.OnBytes(frame);
    pair.Drain(pair.host, pair.host_events);
  }
  ASSERT_EQ(pair.host_events.size(), 1U);
  EXPECT_EQ(pair.host_events[0].kind, LinkEvent::Kind::kBroken);
}

}  // namespace
}  // namespace soma::wire
