// SPDX-License-Identifier: Apache-2.0
// The way out of a virtual machine, through a real agent in a child process.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "guest/agent_driver.h"
#include "guest/egress_gate.h"
#include "wire/message.h"
#include "wire/session.h"

namespace soma::guest {
namespace {

using wire::Exit;
using wire::Failed;

// A listener or a datagram socket on the loopback, standing in for one that catches everything.
Fd LoopbackSocket(int type, std::uint16_t& port) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int on = 1;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  if (type == SOCK_STREAM) {
    EXPECT_EQ(::listen(socket.get(), 10), 0);
  } else {
    EXPECT_EQ(::setsockopt(socket.get(), SOL_IP, IP_PKTINFO, &on, sizeof on), 0);
  }
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port = ntohs(address.sin_port);
  return socket;
}

Fd ConnectTo(int type, std::uint16_t port) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(AgentEgress, AConnectionIsAskedForAndCarried) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.tcp4 = LoopbackSocket(SOCK_STREAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_STREAM, port);
  ASSERT_EQ(::write(client.get(), "GET", 3), 3);
  ::shutdown(client.get(), SHUT_WR);
  agent.Until([&] { return !agent.opened().empty(); });
  const auto& [channel, message] = agent.opened()[0];
  EXPECT_EQ(std::get<wire::Open>(message).host, "127.0.0.1");
  EXPECT_EQ(std::get<wire::Open>(message).port, port);
  // Not a byte before the decision.
  EXPECT_EQ(agent[channel].out, "");
  ASSERT_TRUE(agent.session().Reply(channel, wire::Opened{}));
  agent.Until([&] { return agent[channel].Find<wire::End>() != nullptr; });
  EXPECT_EQ(agent[channel].out, "GET");
  agent.session().Write(channel, wire::DataKind::kBytes, AsBytes("200 OK"));
  agent.session().Finish(channel);
  agent.Run(wire::GetStats{});
  char answer[16] = {};
  EXPECT_EQ(::recv(client.get(), answer, sizeof answer, MSG_WAITALL), 6);
  EXPECT_STREQ(answer, "200 OK");
}

TEST(AgentEgress, ARefusalResets) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.tcp4 = LoopbackSocket(SOCK_STREAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_STREAM, port);
  agent.Until([&] { return !agent.opened().empty(); });
  ASSERT_TRUE(agent.session().Reply(agent.opened()[0].first,
                                    Failed{.code = Errc::kPermissionDenied, .message = "no"}));
  agent.Run(wire::GetStats{});
  char byte = 0;
  EXPECT_EQ(::read(client.get(), &byte, 1), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(AgentEgress, AQueryIsAnsweredFromTheAddressThatWasAsked) {
  std::uint16_t port = 0;
  CaptureListeners listeners;
  listeners.dns_udp4 = LoopbackSocket(SOCK_DGRAM, port);
  AgentDriver agent(std::move(listeners));
  const Fd client = ConnectTo(SOCK_DGRAM, port);
  ASSERT_EQ(::write(client.get(), "who?", 4), 4);
  agent.Until([&] { return !agent.opened().empty(); });
  const auto& [channel, message] = agent.opened()[0];
  EXPECT_EQ(AsText(std::get<wire::Datagram>(message).bytes), "who?");
  ASSERT_TRUE(agent.session().Reply(channel, wire::DatagramReply{.bytes = {'m', 'e'}}));
  agent.Run(wire::GetStats{});
  char answer[16] = {};
  EXPECT_EQ(::read(client.get(), answer, sizeof answer), 2);
  EXPECT_STREQ(answer, "me");
}

}  // namespace
}  // namespace soma::guest
