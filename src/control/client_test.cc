// SPDX-License-Identifier: Apache-2.0
#include "control/client.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "base/error.h"
#include "control/messages.h"

namespace soma::control {
namespace {

Reply ReplyTo(const Client::Asked& asked) { return Accepted(*DecodeRequest(asked.packet)); }

TEST(Client, MatchesRepliesInAnyOrder) {
  Client client;
  const auto first = client.Ask({.verb = Verb::kHello});
  const auto second = client.Ask({.verb = Verb::kSockets});
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->sequence, second->sequence);
  EXPECT_EQ(client.Receive(Encode(ReplyTo(*second)), 0)->sequence, second->sequence);
  EXPECT_EQ(client.Receive(Encode(ReplyTo(*first)), 0)->sequence, first->sequence);
  EXPECT_EQ(client.under_way(), 0U);
}

TEST(Client, RefusesWhatNobodyAsked) {
  Client client;
  Reply reply;
  reply.verb = Verb::kHello;
  reply.sequence = 5;
  EXPECT_EQ(client.Receive(Encode(reply), 0).error().code(), Errc::kDataLoss);
  const auto asked = client.Ask({.verb = Verb::kHello});
  reply = ReplyTo(*asked);
  reply.verb = Verb::kSockets;
  EXPECT_FALSE(client.Receive(Encode(reply), 0));
}

TEST(Client, RefusesADifferentNumberOfDescriptors) {
  Client client;
  const auto asked = client.Ask({.verb = Verb::kHello});
  EXPECT_FALSE(client.Receive(Encode(ReplyTo(*asked)), 1));
}

TEST(Client, HandsOutEvents) {
  Client client;
  Reply event;
  event.verb = Verb::kEvent;
  event.status.state = SandboxState::kExited;
  const auto received = client.Receive(Encode(event), 0);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->status.state, SandboxState::kExited);
}

TEST(Client, HasABound) {
  Client client;
  for (std::size_t i = 0; i < Client::kUnderWayMax; ++i) {
    ASSERT_TRUE(client.Ask({.verb = Verb::kHello}));
  }
  EXPECT_EQ(client.Ask({.verb = Verb::kHello}).error().code(), Errc::kResourceExhausted);
}

}  // namespace
}  // namespace soma::control
